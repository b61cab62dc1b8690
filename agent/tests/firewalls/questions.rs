//! Questions to a host port, and to a host outside, each of which is answered or not.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::thread::scope;
use std::time::Duration;

use shunt_lab::{patience, uninterrupted};
use socket2::{Domain, Protocol, Socket, Type};

use crate::linked::{CLOSED, NODE, OUTSIDE, PORTS, Side};
use crate::sctp;

/// Who asks: containers, the node, and a host outside.
const CLIENTS: [&str; 4] = ["one", "two", "node", "outside"];

/// How long an answer may take; what is refused is waited for in vain.
const ANSWER: Duration = Duration::from_millis(400);

/// How one asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Tcp,
    Udp,
    Sctp,
    /// A datagram to a port at which nobody listens: its sender hears an ICMP error that quotes it.
    Refused,
    /// ICMP's own question, to no port.
    Echo,
}

/// One question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) client: &'static str,
    pub(crate) way: Way,
    pub(crate) to: SocketAddr,
}

/// Everybody's questions to the host ports, and to the node.
pub(crate) fn to_host_ports() -> Vec<Question> {
    let mut all = Vec::new();
    for client in CLIENTS {
        for ip in NODE.map(|to| to.parse::<IpAddr>().unwrap()) {
            for (port, _) in PORTS {
                let to = SocketAddr::new(ip, port);
                all.extend([Way::Tcp, Way::Udp, Way::Sctp].map(|way| Question { client, way, to }));
            }
            all.push(Question { client, way: Way::Refused, to: SocketAddr::new(ip, CLOSED.0) });
            all.push(Question { client, way: Way::Echo, to: SocketAddr::new(ip, 0) });
        }
    }
    all
}

/// What containers ask a host outside, which knows no way back to them.
pub(crate) fn to_the_outside() -> Vec<Question> {
    let mut all = Vec::new();
    for client in ["one", "two"] {
        for ip in OUTSIDE.map(|to| to.parse::<IpAddr>().unwrap()) {
            let port = |way| match way {
                Way::Tcp | Way::Udp | Way::Sctp => PORTS[0].1,
                Way::Refused => CLOSED.1,
                Way::Echo => 0,
            };
            let ways = [Way::Tcp, Way::Udp, Way::Sctp, Way::Refused, Way::Echo];
            all.extend(ways.map(|way| Question { client, way, to: SocketAddr::new(ip, port(way)) }));
        }
    }
    all
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} by {:?}", self.client, self.to, self.way)
    }
}

impl Question {
    /// What the side's client is answered, if anything.
    pub(crate) fn ask(&self, side: &Side) -> Option<String> {
        side.client(self.client).enter(|| answer(self.way, self.to)).unwrap()
    }
}

/// What is answered to each of these, all asked at once.
pub(crate) fn answers(side: &Side, questions: &[Question]) -> Vec<Option<String>> {
    scope(|threads| {
        let asking: Vec<_> = questions.iter().map(|it| threads.spawn(move || it.ask(side))).collect();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

/// What the calling thread's namespace is answered, if anything.
pub(crate) fn answer(way: Way, to: SocketAddr) -> Option<String> {
    let told = match way {
        Way::Tcp => by_tcp(to),
        Way::Udp => by_udp(to),
        Way::Sctp => sctp::ask((to.ip(), to.port()), patience(ANSWER)),
        Way::Refused => by_error(to),
        Way::Echo => by_echo(to),
    };
    told.ok()
}

fn by_tcp(to: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&to, patience(ANSWER))?;
    stream.set_read_timeout(Some(patience(ANSWER)))?;
    stream.write_all(b"word")?;
    let mut heard = [0; 64];
    let length = uninterrupted(|| stream.read(&mut heard))?;
    text(&heard[..length])
}

fn by_udp(to: SocketAddr) -> io::Result<String> {
    let socket = UdpSocket::bind(any_like(to))?;
    socket.set_read_timeout(Some(patience(ANSWER)))?;
    // Unconnected: an answer by another name is none.
    socket.send_to(b"word", to)?;
    let mut heard = [0; 64];
    let (length, from) = uninterrupted(|| socket.recv_from(&mut heard))?;
    if from == to { text(&heard[..length]) } else { Err(io::Error::other("another name")) }
}

fn by_error(to: SocketAddr) -> io::Result<String> {
    let socket = UdpSocket::bind(any_like(to))?;
    socket.set_read_timeout(Some(patience(ANSWER)))?;
    socket.connect(to)?;
    socket.send(b"word")?;
    match uninterrupted(|| socket.recv(&mut [0; 4])) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok("a refusal".to_owned()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::other("somebody listens")),
    }
}

/// A ping socket asks: the kernel sees to the identifier and the checksum.
fn by_echo(to: SocketAddr) -> io::Result<String> {
    let (domain, protocol, kind) = if to.is_ipv4() {
        (Domain::IPV4, Protocol::ICMPV4, 8)
    } else {
        (Domain::IPV6, Protocol::ICMPV6, 128)
    };
    let socket: UdpSocket = Socket::new(domain, Type::DGRAM, Some(protocol))?.into();
    socket.set_read_timeout(Some(patience(ANSWER)))?;
    socket.send_to(&[kind, 0, 0, 0, 0, 0, 0, 1, b'w', b'o', b'r', b'd'], to)?;
    let (_, from) = uninterrupted(|| socket.recv_from(&mut [0; 64]))?;
    if from.ip() == to.ip() { Ok("an echo".to_owned()) } else { Err(io::Error::other("another name")) }
}

/// An answer that says nothing is none.
fn text(heard: &[u8]) -> io::Result<String> {
    if heard.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(heard).into_owned())
}

fn any_like(to: SocketAddr) -> &'static str {
    if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }
}
