//! Conversations between two places: what is sent has to come back.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::namespace::Namespace;

/// How long each step may take: three retransmissions of a SYN.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long a connection that is to be refused is tried: one retransmission of a SYN.
const REFUSAL: Duration = Duration::from_millis(1500);

/// How long an answer to one datagram is waited for, and how often it is sent.
const ANSWER: Duration = Duration::from_secs(1);
const TIMES: usize = 5;

/// Between two looks for a connection, or for the end.
const PAUSE: Duration = Duration::from_millis(5);

/// Who talks to whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub(super) client: &'a Namespace,
    pub(super) server: &'a Namespace,
    /// Where the server listens.
    pub(super) listens: SocketAddr,
    /// Where the client sends to, if not there.
    pub(super) through: Option<SocketAddr>,
}

impl Ends<'_> {
    fn to(&self) -> SocketAddr {
        self.through.unwrap_or(self.listens)
    }
}

/// Connects, and has as many messages of this size echoed.
///
/// # Errors
/// What does not arrive, and where.
pub(super) fn tcp(ends: Ends<'_>, rounds: usize, size: usize) -> io::Result<()> {
    let (client, server) = connect(ends)?;
    thread::scope(|scope| {
        let echo = scope.spawn(move || echo(server, rounds, size));
        let asked = ask(client, rounds, size);
        let echoed = echo.join().unwrap_or_else(|_| Err(io::Error::other("the echo's thread panicked")));
        asked.and(echoed)
    })
}

/// Whether a connection is answered.
///
/// # Errors
/// It cannot be tried.
pub(super) fn is_reached(ends: Ends<'_>) -> io::Result<bool> {
    let _listener = ends.server.enter(|| TcpListener::bind(ends.listens))?;
    ends.client.enter(|| Ok(TcpStream::connect_timeout(&ends.to(), REFUSAL).is_ok()))
}

/// A connection's two ends.
///
/// # Errors
/// It is not made in time.
pub(super) fn connect(ends: Ends<'_>) -> io::Result<(TcpStream, TcpStream)> {
    let listener = ends.server.enter(|| TcpListener::bind(ends.listens))?;
    listener.set_nonblocking(true)?;
    let client = ends.client.enter(|| TcpStream::connect_timeout(&ends.to(), PATIENCE))?;
    let begun = Instant::now();
    let server = loop {
        match listener.accept() {
            Ok((server, _)) => break server,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < PATIENCE => {
                thread::sleep(PAUSE);
            }
            // Somebody else has answered.
            Err(error) => return Err(error),
        }
    };
    server.set_nonblocking(false)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
    }
    Ok((client, server))
}

fn ask(mut client: TcpStream, rounds: usize, size: usize) -> io::Result<()> {
    let sent: Vec<u8> = (0..size).map(|at| at as u8).collect();
    let mut heard = vec![0; size];
    for _ in 0..rounds {
        client.write_all(&sent)?;
        client.read_exact(&mut heard)?;
        if heard != sent {
            return Err(io::Error::other("what came back is not what was sent"));
        }
    }
    Ok(())
}

fn echo(mut server: TcpStream, rounds: usize, size: usize) -> io::Result<()> {
    let mut heard = vec![0; size];
    for _ in 0..rounds {
        server.read_exact(&mut heard)?;
        server.write_all(&heard)?;
    }
    Ok(())
}

/// Has as many datagrams of this size echoed; one that is lost is sent again, five times at most.
///
/// # Errors
/// What does not arrive.
pub(super) fn udp(ends: Ends<'_>, rounds: usize, size: usize) -> io::Result<()> {
    let server = ends.server.enter(|| UdpSocket::bind(ends.listens))?;
    server.set_read_timeout(Some(PAUSE))?;
    let client = datagrams(ends)?;
    client.set_read_timeout(Some(ANSWER))?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut heard = vec![0; size];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok((length, from)) = server.recv_from(&mut heard) {
                    // One that is lost is sent again.
                    let _lost = server.send_to(&heard[..length], from);
                }
            }
        });
        let asked = (0..rounds).try_for_each(|_| ask_by_datagram(&client, size));
        is_over.store(true, Ordering::Relaxed);
        asked
    })
}

/// The client's socket for datagrams to the server.
///
/// # Errors
/// The kernel's.
pub(super) fn datagrams(ends: Ends<'_>) -> io::Result<UdpSocket> {
    let any: IpAddr = match ends.to() {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    ends.client.enter(|| {
        let client = UdpSocket::bind((any, 0))?;
        client.connect(ends.to()).map(|()| client)
    })
}

fn ask_by_datagram(client: &UdpSocket, size: usize) -> io::Result<()> {
    let mut heard = vec![0; size];
    let mut last = io::ErrorKind::TimedOut.into();
    for _ in 0..TIMES {
        match client.send(&vec![7; size]).and_then(|_| client.recv(&mut heard)) {
            Ok(length) if length == size => return Ok(()),
            Ok(_) => last = io::Error::other("what came back is not what was sent"),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Bits a second that one connection carries within the time, without what comes before a quarter of it: a burst is no rate.
///
/// # Errors
/// It is not made, or breaks.
pub(super) fn rate(ends: Ends<'_>, time: Duration) -> io::Result<f64> {
    const PIECE: usize = 8 << 10;
    let (mut client, mut server) = connect(ends)?;
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            let piece = [7; PIECE];
            while begun.elapsed() < time && client.write_all(&piece).is_ok() {}
        });
        let (mut piece, mut first, mut bytes) = ([0; PIECE], None, 0);
        while begun.elapsed() < time {
            let read = server.read(&mut piece)?;
            match first {
                None if begun.elapsed() >= time / 4 => first = Some(Instant::now()),
                None => {}
                Some(_) => bytes += read,
            }
            if read == 0 {
                break;
            }
        }
        drop(server);
        let measured = first.map_or(Duration::ZERO, |first| first.elapsed());
        if measured.is_zero() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes as f64 * 8.0 / measured.as_secs_f64())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(node: &Namespace, port: u16) -> Ends<'_> {
        let listens = SocketAddr::from(([127, 0, 0, 1], port));
        Ends { client: node, server: node, listens, through: None }
    }

    #[test]
    fn what_is_sent_comes_back_and_a_port_without_a_server_is_told() {
        let node = Namespace::of_node();
        tcp(ends(&node, 47_101), 3, 100_000).unwrap();
        udp(ends(&node, 47_102), 3, 512).unwrap();
        assert!(rate(ends(&node, 47_103), Duration::from_millis(200)).unwrap() > 1e6);
        assert!(is_reached(ends(&node, 47_106)).unwrap());
        let through = Some(SocketAddr::from(([127, 0, 0, 1], 47_105)));
        assert!(!is_reached(Ends { through, ..ends(&node, 47_107) }).unwrap());
        let refused = tcp(Ends { through, ..ends(&node, 47_104) }, 1, 1).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
