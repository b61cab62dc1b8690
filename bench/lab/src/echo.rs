//! A server that sends back what it is sent, over TCP and UDP on one port.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{Namespace, once_free, uninterrupted};

/// How often the threads look whether they are to end.
const TICK: Duration = Duration::from_millis(20);

/// The largest piece that is echoed at once; also the largest that a [`crate::Conversation`] has on its way.
pub(crate) const PIECE: usize = 32 * 1024;

/// A running server. Dropping it ends its threads and closes its sockets.
#[derive(Debug)]
pub struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Echo {
    /// Listens on `ip` and `port` in `namespace`.
    ///
    /// # Errors
    /// When the address is not there or in use.
    pub fn listen(namespace: &Namespace, ip: IpAddr, port: u16) -> Result<Self> {
        let address = SocketAddr::new(ip, port);
        let (tcp, udp) =
            namespace.enter(|| bind(address))?.with_context(|| format!("listen on {address}"))?;
        tcp.set_nonblocking(true).context("make a listener non-blocking")?;
        udp.set_read_timeout(Some(TICK)).context("bound a socket's reads")?;
        let stop = Arc::new(AtomicBool::new(false));
        let [for_tcp, for_udp] = [Arc::clone(&stop), Arc::clone(&stop)];
        let threads = vec![
            thread::spawn(move || serve_tcp(&tcp, &for_tcp)),
            thread::spawn(move || serve_udp(&udp, &for_udp)),
        ];
        Ok(Self { address, stop, threads })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, UdpSocket)> {
    once_free(|| TcpListener::bind(address).and_then(|tcp| Ok((tcp, UdpSocket::bind(address)?))))
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

fn serve_tcp(listener: &TcpListener, stop: &Arc<AtomicBool>) {
    let mut connections = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok((stream, _)) = listener.accept() {
            let stop = Arc::clone(stop);
            connections.push(thread::spawn(move || serve_connection(stream, &stop)));
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
    for connection in connections {
        drop(connection.join());
    }
}

fn serve_connection(mut stream: TcpStream, stop: &AtomicBool) {
    let mut piece = vec![0; PIECE];
    if stream.set_nonblocking(false).and(stream.set_read_timeout(Some(TICK))).is_err() {
        return;
    }
    drop(stream.set_nodelay(true));
    while !stop.load(Ordering::Relaxed) {
        match uninterrupted(|| stream.read(&mut piece)) {
            Ok(0) => return,
            Ok(length) => {
                if stream.write_all(&piece[..length]).is_err() {
                    return;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn serve_udp(socket: &UdpSocket, stop: &AtomicBool) {
    let mut datagram = vec![0; PIECE];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut datagram) {
            drop(socket.send_to(&datagram[..length], from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_free_in_a_moment_is_waited_for() {
        let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = held.local_addr().unwrap();
        let holder = thread::spawn(move || {
            thread::sleep(10 * TICK);
            drop(held);
        });
        bind(address).unwrap();
        holder.join().unwrap();
    }
}
