//! Load between two places for a time, without pinned processors: figures to compare, not to publish.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::talk::{Ends, connect};

/// Bytes of a request and of its response.
const MESSAGE: usize = 64;

/// How long one operation may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a server waits until it looks whether it is still wanted.
const PAUSE: Duration = Duration::from_millis(1);

/// Round trips a second on one TCP connection.
///
/// # Errors
/// It breaks.
pub(super) fn tcp_rr(ends: Ends<'_>, time: Duration) -> io::Result<f64> {
    let (mut client, mut server) = connect(ends)?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut message = [0; MESSAGE];
            while server.read_exact(&mut message).is_ok() && server.write_all(&message).is_ok() {}
        });
        let mut message = [7; MESSAGE];
        // The server ends with the connection.
        let done = repeat(time, || client.write_all(&message).and_then(|()| client.read_exact(&mut message)));
        drop(client);
        done
    })
}

/// TCP connections a second, each with one request and its response.
///
/// # Errors
/// One fails.
pub(super) fn tcp_crr(ends: Ends<'_>, time: Duration) -> io::Result<f64> {
    let listener = ends.server.enter(|| TcpListener::bind(ends.listens))?;
    listener.set_nonblocking(true)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| answer(&listener, &is_over));
        let done = ends.client.enter(|| repeat(time, || exchange(ends.listens)));
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// The server closes first, so that the client's port is free at once.
fn exchange(to: SocketAddr) -> io::Result<()> {
    let mut client = TcpStream::connect_timeout(&to, PATIENCE)?;
    client.set_read_timeout(Some(PATIENCE))?;
    let mut message = [7; MESSAGE];
    client.write_all(&message)?;
    client.read_exact(&mut message)?;
    if client.read(&mut message)? == 0 { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

fn answer(listener: &TcpListener, is_over: &AtomicBool) {
    let mut message = [0; MESSAGE];
    while !is_over.load(Ordering::Relaxed) {
        let Ok((mut server, _)) = listener.accept() else {
            thread::yield_now();
            continue;
        };
        // The client sees what goes wrong.
        let _broken = server
            .set_nonblocking(false)
            .and_then(|()| server.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| server.read_exact(&mut message))
            .and_then(|()| server.write_all(&message));
    }
}

/// Round trips of datagrams a second.
///
/// # Errors
/// One is lost.
pub(super) fn udp_rr(ends: Ends<'_>, time: Duration) -> io::Result<f64> {
    let server = ends.server.enter(|| UdpSocket::bind(ends.listens))?;
    server.set_read_timeout(Some(PAUSE))?;
    let client = ends.client.enter(|| {
        let client = UdpSocket::bind(("0.0.0.0", 0))?;
        client.connect(ends.listens).map(|()| client)
    })?;
    client.set_read_timeout(Some(PATIENCE))?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut message = [0; MESSAGE];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok((length, from)) = server.recv_from(&mut message) {
                    // The client sees what is lost.
                    let _lost = server.send_to(&message[..length], from);
                }
            }
        });
        let mut message = [7; MESSAGE];
        let done = repeat(time, || client.send(&message).and_then(|_| client.recv(&mut message)).map(drop));
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// How often something is done in a second.
fn repeat(time: Duration, mut once: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let (begun, mut done) = (Instant::now(), 0_u32);
    while begun.elapsed() < time {
        once()?;
        done += 1;
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}
