//! A server that tells its clients who they seem to be, and such clients.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use shunt_lab::{Namespace, uninterrupted};

/// Where the server listens.
const PORT: u16 = 7000;
/// How long duplicate address detection may take.
const TENTATIVE: Duration = Duration::from_secs(10);
/// When a question is asked again, at the latest: a neighbour that is not found in time, or a refusal beyond the kernel's rate, is lost.
const AGAIN: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// Tells everybody who asks which address that came from.
pub(crate) struct Server {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// On each of `addresses`, at this port.
    pub(crate) fn start(inside: &Namespace, addresses: &[IpAddr]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for own in addresses {
            let at = SocketAddr::new(*own, PORT);
            let (tcp, udp) = inside.enter(|| bound(at)).unwrap();
            tcp.set_nonblocking(true).unwrap();
            udp.set_read_timeout(Some(TICK)).unwrap();
            let [for_tcp, for_udp] = [Arc::clone(&stop), Arc::clone(&stop)];
            threads.push(thread::spawn(move || {
                while !for_tcp.load(Ordering::Relaxed) {
                    match tcp.accept() {
                        Ok((mut stream, from)) => drop(stream.write_all(from.ip().to_string().as_bytes())),
                        Err(_) => thread::sleep(Duration::from_millis(1)),
                    }
                }
            }));
            threads.push(thread::spawn(move || {
                while !for_udp.load(Ordering::Relaxed) {
                    if let Ok((_, from)) = udp.recv_from(&mut [0; 16]) {
                        drop(udp.send_to(from.ip().to_string().as_bytes(), from));
                    }
                }
            }));
        }
        Self { stop, threads }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Sockets at an address, which may be tentative for a moment.
fn bound(at: SocketAddr) -> (TcpListener, UdpSocket) {
    let begun = Instant::now();
    loop {
        match (TcpListener::bind(at), UdpSocket::bind(at)) {
            (Ok(tcp), Ok(udp)) => return (tcp, udp),
            (tcp, udp) => assert!(begun.elapsed() < TENTATIVE, "{at}: {tcp:?} {udp:?}"),
        }
        thread::sleep(TICK);
    }
}

/// Whom the server saw; none where it cannot be reached within `patience`.
pub(crate) fn ask_tcp(to: SocketAddr, patience: Duration) -> Option<IpAddr> {
    let mut stream = TcpStream::connect_timeout(&to, patience).ok()?;
    stream.set_read_timeout(Some(patience)).unwrap();
    let mut told = String::new();
    uninterrupted(|| stream.read_to_string(&mut told)).unwrap();
    Some(told.parse().unwrap())
}

/// Whom the server saw; none where the question is refused.
///
/// # Errors
/// Neither an answer nor a refusal within `patience`.
pub(crate) fn ask_udp(to: SocketAddr, patience: Duration) -> io::Result<Option<IpAddr>> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(to)?;
    socket.set_read_timeout(Some(AGAIN.min(patience / 3))).unwrap();
    let (mut told, begun) = ([0; 64], Instant::now());
    loop {
        match socket.send(b"who?").and_then(|_| uninterrupted(|| socket.recv(&mut told))) {
            Ok(length) => return Ok(Some(std::str::from_utf8(&told[..length]).unwrap().parse().unwrap())),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < patience => {}
            Err(error) => return Err(error),
        }
    }
}
