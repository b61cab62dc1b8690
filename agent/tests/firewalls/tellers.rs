//! Servers that tell whoever asks as whom they see them: by TCP, UDP and SCTP.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shunt_lab::{Namespace, once_free, uninterrupted};

use crate::sctp::{self, Raw};

/// How often the threads look whether they are to end.
const TICK: Duration = Duration::from_millis(20);

/// Running servers. Dropping them ends their threads and closes their sockets.
#[derive(Default)]
pub(crate) struct Tellers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Tellers {
    /// At each of the namespace's `addresses`, on each of these ports.
    pub(crate) fn start(namespace: &Namespace, addresses: &[IpAddr], ports: &[u16]) -> Self {
        let mut tellers = Self::default();
        for address in addresses {
            for port in ports {
                let (tcp, udp) = namespace.enter(|| bind((*address, *port).into())).unwrap().unwrap();
                tellers.serve(move |stop| by_tcp(&tcp, stop));
                tellers.serve(move |stop| by_udp(&udp, stop));
            }
            let raw = namespace.enter(|| Raw::open(*address, TICK)).unwrap().unwrap();
            let ports = ports.to_vec();
            tellers.serve(move |stop| by_sctp(&raw, &ports, stop));
        }
        tellers
    }

    fn serve(&mut self, work: impl FnOnce(&Arc<AtomicBool>) + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || work(&stop)));
    }
}

impl Drop for Tellers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn bind(at: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let (tcp, udp) = once_free(|| TcpListener::bind(at).and_then(|tcp| Ok((tcp, UdpSocket::bind(at)?))))?;
    tcp.set_nonblocking(true)?;
    udp.set_read_timeout(Some(TICK))?;
    Ok((tcp, udp))
}

fn by_tcp(listener: &TcpListener, stop: &Arc<AtomicBool>) {
    let mut asked: Vec<JoinHandle<()>> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok((stream, from)) = listener.accept() {
            let stop = Arc::clone(stop);
            asked.push(thread::spawn(move || tell(stream, from.ip(), &stop)));
            asked.retain(|one| !one.is_finished());
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
    asked.into_iter().for_each(|one| drop(one.join()));
}

/// Waits for a word of the client's: rules may let through its first segment alone.
fn tell(mut stream: TcpStream, who: IpAddr, stop: &AtomicBool) {
    if stream.set_nonblocking(false).and(stream.set_read_timeout(Some(TICK))).is_err() {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        match uninterrupted(|| stream.read(&mut [0; 16])) {
            Ok(0) => return,
            Ok(_) => return drop(stream.write_all(who.to_string().as_bytes())),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn by_udp(socket: &UdpSocket, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        if let Ok((_, from)) = socket.recv_from(&mut [0; 16]) {
            drop(socket.send_to(from.ip().to_string().as_bytes(), from));
        }
    }
}

fn by_sctp(raw: &Raw, ports: &[u16], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        if let Ok(asked) = raw.receive()
            && asked.kind == sctp::INIT
            && ports.contains(&asked.ports[1])
        {
            drop(raw.tell(&asked));
        }
    }
}
