//! A client of [`crate::Echo`] that believes nothing: every byte that comes back is compared.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::echo::PIECE;
use crate::{Namespace, patience, uninterrupted};

/// How long an answer may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a conversation is carried by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// A TCP connection.
    Tcp,
    /// UDP datagrams on a connected socket.
    Udp,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

/// An open connection, or a connected UDP socket.
#[derive(Debug)]
pub struct Conversation {
    socket: Socket,
    with: SocketAddr,
    said: u64,
}

impl Conversation {
    /// Connects from `namespace` to the echo server at `with`.
    ///
    /// # Errors
    /// When a TCP connection is refused or not answered.
    pub fn open(namespace: &Namespace, protocol: Protocol, with: SocketAddr) -> Result<Self> {
        let socket = namespace
            .enter(|| connect(protocol, with))?
            .with_context(|| format!("connect to {with} over {protocol:?}"))?;
        Ok(Self { socket, with, said: 0 })
    }

    /// The end in `namespace`.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn own_end(&self) -> Result<SocketAddr> {
        Ok(match &self.socket {
            Socket::Tcp(stream) => stream.local_addr()?,
            Socket::Udp(socket) => socket.local_addr()?,
        })
    }

    /// Sends `length` bytes that were never sent before, at most 32 KiB (1,400 over UDP), and compares what comes back.
    ///
    /// # Errors
    /// When the answer does not come in time or is another one.
    pub fn say(&mut self, length: usize) -> Result<()> {
        self.said += 1;
        let sent = payload(self.said, length.min(PIECE));
        let mut heard = vec![0; sent.len()];
        let answer = match &mut self.socket {
            Socket::Tcp(stream) => stream.write_all(&sent).and_then(|()| stream.read_exact(&mut heard)),
            Socket::Udp(socket) => {
                socket.send(&sent).and_then(|_| uninterrupted(|| socket.recv(&mut heard))).map(drop)
            }
        };
        answer.with_context(|| format!("message {} of a conversation with {}", self.said, self.with))?;
        if heard != sent {
            bail!("message {} of a conversation with {} came back altered", self.said, self.with);
        }
        Ok(())
    }

    /// [`Conversation::say`], `rounds` times.
    ///
    /// # Errors
    /// The first failure.
    pub fn chat(&mut self, rounds: u32, length: usize) -> Result<()> {
        (0..rounds).try_for_each(|_| self.say(length))
    }
}

fn connect(protocol: Protocol, with: SocketAddr) -> std::io::Result<Socket> {
    match protocol {
        Protocol::Tcp => {
            let stream = TcpStream::connect_timeout(&with, patience(PATIENCE))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(patience(PATIENCE)))?;
            stream.set_write_timeout(Some(patience(PATIENCE)))?;
            Ok(Socket::Tcp(stream))
        }
        Protocol::Udp => {
            let any: IpAddr = match with {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(with)?;
            socket.set_read_timeout(Some(patience(PATIENCE)))?;
            Ok(Socket::Udp(socket))
        }
    }
}

/// Bytes that differ from message to message and from place to place (xorshift64).
fn payload(serial: u64, length: usize) -> Vec<u8> {
    let mut state = serial.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_two_messages_differ() {
        assert_ne!(payload(1, 64), payload(2, 64));
        assert_eq!(payload(3, 1400).len(), 1400);
    }
}
