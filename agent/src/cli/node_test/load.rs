//! Load between two places for a time, without pinned processors: figures to compare, not to publish.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::talk::{Ends, connect, datagrams};

/// Bytes of a request and of its response.
const MESSAGE: usize = 64;

/// How long one operation may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an answer to a datagram is waited for, and how many of one measurement may be lost.
const ANSWER: Duration = Duration::from_millis(250);
const MOST_LOST: u32 = 3;

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

/// Round trips of datagrams a second. The time of one that is lost is counted.
///
/// # Errors
/// More than a few are lost, or something breaks.
pub(super) fn udp_rr(ends: Ends<'_>, time: Duration) -> io::Result<f64> {
    let server = ends.server.enter(|| UdpSocket::bind(ends.listens))?;
    server.set_read_timeout(Some(PAUSE))?;
    let client = datagrams(ends)?;
    client.set_read_timeout(Some(ANSWER))?;
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
        let done = datagram_round_trips(&client, time);
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

fn datagram_round_trips(client: &UdpSocket, time: Duration) -> io::Result<f64> {
    let (begun, mut done, mut lost) = (Instant::now(), 0_u32, 0_u32);
    while begun.elapsed() < time || done == 0 {
        if is_answered(client, done + lost)? {
            done += 1;
            continue;
        }
        lost += 1;
        if lost > MOST_LOST {
            return Err(io::Error::other(format!("{lost} of {} datagrams were lost", done + lost)));
        }
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}

/// Whether a datagram of this number is answered in time; the answer to another one is late, and not this one's.
fn is_answered(client: &UdpSocket, number: u32) -> io::Result<bool> {
    let mut sent = [7; MESSAGE];
    sent[..size_of::<u32>()].copy_from_slice(&number.to_ne_bytes());
    client.send(&sent)?;
    let mut heard = [0; MESSAGE];
    loop {
        match client.recv(&mut heard) {
            Ok(_) if heard == sent => return Ok(true),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client, and a server on this machine.
    fn pair() -> (UdpSocket, UdpSocket) {
        let [client, server] = [(); 2].map(|()| UdpSocket::bind(("127.0.0.1", 0)).unwrap());
        client.connect(server.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(ANSWER)).unwrap();
        (client, server)
    }

    #[test]
    fn a_few_lost_datagrams_and_late_answers_are_gone_beyond() {
        let (client, server) = pair();
        server.set_read_timeout(Some(ANSWER * 4)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut message, mut number) = ([0; MESSAGE], 0);
                while let Ok((_, from)) = server.recv_from(&mut message) {
                    number += 1;
                    // The second is lost, and the third's answer comes when the fourth was sent.
                    match number {
                        2 => continue,
                        3 => thread::sleep(ANSWER + ANSWER / 4),
                        _ => {}
                    }
                    server.send_to(&message, from).unwrap();
                }
            });
            assert!(datagram_round_trips(&client, ANSWER * 4).unwrap() > 1.0);
        });
    }

    #[test]
    fn a_server_that_is_silent_is_told_with_how_many_were_lost() {
        let (client, _silent) = pair();
        let told = datagram_round_trips(&client, Duration::ZERO).unwrap_err().to_string();
        assert_eq!(told, "4 of 4 datagrams were lost");
    }
}
