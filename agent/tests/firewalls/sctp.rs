//! The beginning of an association of SCTP over raw sockets, for the kernel may know no SCTP: a question, and an answer that says as whom its sender was seen.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use shunt_lab::uninterrupted;
use socket2::{Domain, Protocol, Socket, Type};

use crate::packets::{Between, SCTP, sctp_init};

/// Kinds of chunks (RFC 9260, section 3.2).
pub(crate) const INIT: u8 = 1;
const INIT_ACK: u8 = 2;

/// The verification tag of whoever answers; of whoever asks it is this and the port.
const OF_SERVER: u32 = 0x2000_0000;
const OF_CLIENT: u32 = 0x1000_0000;

/// The port of the next client: connection tracking knows the ones before for a while.
static NEXT: AtomicU16 = AtomicU16::new(20_000);

/// Everything of SCTP that comes to a namespace.
pub(crate) struct Raw(UdpSocket);

/// The first chunk of a packet.
pub(crate) struct Chunk {
    from: IpAddr,
    pub(crate) ports: [u16; 2],
    pub(crate) kind: u8,
    value: Vec<u8>,
}

impl Chunk {
    /// Of a packet behind its IP header.
    fn read(from: IpAddr, bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let value = bytes.get(16..12 + usize::from(word(14)?))?.to_vec();
        Some(Self { from, ports: [word(0)?, word(2)?], kind: *bytes.get(12)?, value })
    }
}

impl Raw {
    /// In the calling thread's namespace, for the version of `like`.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open(like: IpAddr, patience: Duration) -> io::Result<Self> {
        let domain = if like.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket: UdpSocket = Socket::new(domain, Type::RAW, Some(Protocol::from(i32::from(SCTP))))?.into();
        socket.set_read_timeout(Some(patience))?;
        Ok(Self(socket))
    }

    fn send(&self, to: IpAddr, ports: [u16; 2], tag: u32, kind: u8, value: &[u8]) -> io::Result<usize> {
        // The checksum is none of the addresses.
        let packet = Between { from: to, to }.sctp(ports, tag, kind, value);
        self.0.send_to(&packet, (to, 0))
    }

    /// The next packet's chunk.
    ///
    /// # Errors
    /// Nothing comes in time, or no chunk.
    pub(crate) fn receive(&self) -> io::Result<Chunk> {
        let mut bytes = [0; 2048];
        let (length, from) = uninterrupted(|| self.0.recv_from(&mut bytes))?;
        // Of IPv4 a raw socket gets the IP header too.
        let header = if from.is_ipv4() { usize::from(bytes[0] & 15) * 4 } else { 0 };
        let packet = bytes.get(header..length).unwrap_or_default();
        Chunk::read(from.ip(), packet).ok_or_else(|| io::Error::other("no chunk"))
    }

    /// Answers a question with the address that it came from.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn tell(&self, asked: &Chunk) -> io::Result<usize> {
        let [from, to] = asked.ports;
        let tag = asked.value.first_chunk().map_or(0, |tag| u32::from_be_bytes(*tag));
        let value = [sctp_init(OF_SERVER, true), asked.from.to_string().into_bytes()].concat();
        self.send(asked.from, [to, from], tag, INIT_ACK, &value)
    }
}

/// Asks from the calling thread's namespace; returns as whom one was seen.
///
/// # Errors
/// There is no answer in time.
pub(crate) fn ask(to: (IpAddr, u16), patience: Duration) -> io::Result<String> {
    let raw = Raw::open(to.0, patience)?;
    let own = NEXT.fetch_add(1, Ordering::Relaxed);
    raw.send(to.0, [own, to.1], 0, INIT, &sctp_init(OF_CLIENT | u32::from(own), false))?;
    let begun = Instant::now();
    // What others are told comes as well.
    while begun.elapsed() < patience {
        let told = raw.receive()?;
        if told.kind == INIT_ACK && told.ports == [to.1, own] && told.from == to.0 {
            let seen = told.value.get(sctp_init(OF_SERVER, true).len()..).unwrap_or_default();
            return Ok(String::from_utf8_lossy(seen).into_owned());
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}
