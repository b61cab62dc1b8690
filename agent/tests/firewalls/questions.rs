//! Questions to a host port, each of which is answered or not.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread::scope;
use std::time::Duration;

use shunt_lab::{patience, uninterrupted};

use crate::linked::{NODE, PORTS, Side};

/// Who asks: containers, the node, and a host outside.
const CLIENTS: [&str; 4] = ["one", "two", "node", "outside"];

/// How long an answer may take; what is refused is waited for in vain.
const ANSWER: Duration = Duration::from_millis(400);

/// How one asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Tcp,
    Udp,
}

/// One question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) client: &'static str,
    pub(crate) way: Way,
    pub(crate) to: SocketAddr,
}

/// Everybody's questions to the host ports.
pub(crate) fn to_host_ports() -> Vec<Question> {
    let mut all = Vec::new();
    for client in CLIENTS {
        for ip in NODE.map(|to| to.parse().unwrap()) {
            for (port, _) in PORTS {
                let to = SocketAddr::new(ip, port);
                all.extend([Way::Tcp, Way::Udp].map(|way| Question { client, way, to }));
            }
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
