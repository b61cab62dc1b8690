//! Traffic by an uplink: floods that nobody reads, and what arrives of others' datagrams and bytes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use shunt_lab::{Namespace, uninterrupted};

/// The largest payload of a datagram in a frame of 1500 bytes, and how many are handed to the kernel at once.
const PAYLOAD: usize = 1472;
const TOGETHER: usize = 20;

/// What a flow's beginning does is over.
const SETTLED: Duration = Duration::from_millis(700);

/// How long a rate is measured.
const MEASURED: Duration = Duration::from_millis(2500);

/// Datagrams at a rate, until it is dropped. What does not fit the queue is nobody's.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// From one namespace to an address beyond it, in bits of payload a second.
    pub(crate) fn start(from: &Namespace, to: SocketAddr, rate: u64) -> Self {
        let socket = from.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        setsockopt(&socket, sockopt::UdpGsoSegment, &(PAYLOAD as i32)).unwrap();
        socket.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        socket.connect(to).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let flood = move || {
            let datagrams = [7; PAYLOAD * TOGETHER];
            let (begun, mut sent) = (Instant::now(), 0_u64);
            while !flag.load(Ordering::Relaxed) {
                let due = begun.elapsed().as_micros() as u64 * rate / 8_000_000;
                if sent > due {
                    sleep(Duration::from_micros(300));
                    continue;
                }
                // A full queue or an answer that nobody is there is no fault of the flood.
                let _lost = socket.send(&datagrams);
                sent += datagrams.len() as u64;
            }
        };
        Self { stop, thread: Some(std::thread::spawn(flood)) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// A socket that nobody reads from: what comes is dropped.
pub(crate) fn sink(at: &Namespace, port: u16) -> UdpSocket {
    at.enter(|| UdpSocket::bind(("0.0.0.0", port)).unwrap()).unwrap()
}

/// What arrives of datagrams that are sent faster than they may be: bits of payload a second.
pub(crate) fn udp_rate(from: &Namespace, to: (&Namespace, SocketAddr), rate: u64) -> f64 {
    let receiver = to.0.enter(|| UdpSocket::bind(to.1).unwrap()).unwrap();
    setsockopt(&receiver, sockopt::RcvBuf, &(4 << 20)).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let _flood = Flood::start(from, to.1, rate);
    let mut datagram = [0; 2048];
    arriving(|| uninterrupted(|| receiver.recv(&mut datagram)).unwrap_or_default())
}

/// The same of one TCP connection.
pub(crate) fn tcp_rate(from: &Namespace, to: (&Namespace, SocketAddr)) -> f64 {
    let listener = to.0.enter(|| TcpListener::bind(to.1).unwrap()).unwrap();
    let connect = || TcpStream::connect_timeout(&to.1, Duration::from_secs(10)).unwrap();
    let mut client = from.enter(connect).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let sender = std::thread::spawn(move || while client.write_all(&[7; 64 << 10]).is_ok() {});
    let mut piece = [0; 64 << 10];
    let rate = arriving(|| uninterrupted(|| server.read(&mut piece)).unwrap());
    drop(server);
    sender.join().unwrap();
    rate
}

/// Bits a second of what each call says has arrived, once it has settled.
fn arriving(mut receive: impl FnMut() -> usize) -> f64 {
    let begun = Instant::now();
    while begun.elapsed() < SETTLED {
        receive();
    }
    let (begun, mut bytes) = (Instant::now(), 0);
    while begun.elapsed() < MEASURED {
        bytes += receive();
    }
    bytes as f64 * 8.0 / begun.elapsed().as_secs_f64()
}

/// Round trips of datagrams of 64 bytes, sorted; one that is lost takes as long as it was waited for.
pub(crate) fn round_trips(from: &Namespace, to: (&Namespace, SocketAddr), count: u32) -> Vec<Duration> {
    const PATIENCE: Duration = Duration::from_millis(500);
    let server = to.0.enter(|| UdpSocket::bind(to.1).unwrap()).unwrap();
    let client = from.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.connect(to.1).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut heard = [0; 64];
            while !over.load(Ordering::Relaxed) {
                if let Ok((bytes, back)) = uninterrupted(|| server.recv_from(&mut heard)) {
                    server.send_to(&heard[..bytes], back).unwrap();
                }
            }
        });
        let mut trips: Vec<_> = (0..count).map(|number| trip(&client, number)).collect();
        over.store(true, Ordering::Relaxed);
        trips.sort();
        trips
    })
}

fn trip(client: &UdpSocket, number: u32) -> Duration {
    sleep(Duration::from_millis(3));
    let begun = Instant::now();
    let mut said = [0; 64];
    said[..4].copy_from_slice(&number.to_be_bytes());
    client.send(&said).unwrap();
    let mut heard = [0; 64];
    while uninterrupted(|| client.recv(&mut heard)).is_ok() && heard != said {}
    begun.elapsed()
}
