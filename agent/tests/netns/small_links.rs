//! A container whose link takes less than the sender's: the node's stack says so to who sends too much, and a stream adapts.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use nix::libc;
use serde_json::json;
use shunt_lab::{Namespace, Sandbox, patience, uninterrupted};

use crate::stage::Stage;
use crate::uncut::never_cut;

/// Bytes that a packet may have on the small link.
const SMALL: &str = "1280";
const PATIENCE: Duration = Duration::from_secs(20);
/// More than any window that a connection begins with.
const PAYLOAD: usize = 256 << 10;

/// A container "one" with a link of 1500 bytes, and "small" on another bridge.
fn stage() -> (Stage, Sandbox) {
    let mut stage = Stage::empty();
    stage.add("one");
    let other = stage.node.network("others", "cni1", &["10.79.0.0/24", "fd79::/64"]);
    let small = Sandbox::start(&stage.lab, &stage.node, &other.with("mtu", json!(1280)), "small").unwrap();
    stage.node.settle().unwrap();
    (stage, small)
}

fn path(from: &Namespace, to: &str) -> String {
    from.command("ip", &["route", "get", to]).unwrap()
}

#[test]
fn a_datagram_that_is_too_large_for_its_receivers_link_comes_back_as_an_error() {
    let (stage, small) = stage();
    let one = stage.sandboxes[0].namespace();
    for to in small.addresses() {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = one.enter(|| UdpSocket::bind(any).unwrap()).unwrap();
        socket.connect(SocketAddr::new(to, 7000)).unwrap();
        never_cut(&socket);
        let begun = Instant::now();
        // The first ones leave, since nobody has said anything yet.
        while !socket.send(&[7; 1400]).is_err_and(|error| error.raw_os_error() == Some(libc::EMSGSIZE)) {
            assert!(begun.elapsed() < patience(PATIENCE), "nobody says that {to} takes less");
            std::thread::sleep(Duration::from_millis(20));
        }
        let route = path(one, &to.to_string());
        assert!(route.contains(&format!("mtu {SMALL}")), "{route}");
        let server = small.namespace().enter(|| UdpSocket::bind((to, 7000)).unwrap()).unwrap();
        server.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        let fits = 1280 - if to.is_ipv4() { 28 } else { 48 };
        // What came of the closed port before.
        socket.take_error().unwrap();
        socket.send(&vec![8; fits]).unwrap();
        let mut heard = [0; 2000];
        assert_eq!(uninterrupted(|| server.recv(&mut heard)).unwrap(), fits);
    }
}

/// The receiver says that it takes as much as the sender does, as one behind a tunnel would: only the node knows better.
#[test]
fn a_stream_to_a_smaller_link_adapts_to_it() {
    let (stage, small) = stage();
    let one = &stage.sandboxes[0];
    for (to, gateway) in small.addresses().into_iter().zip(["10.79.0.1", "fd79::1"]) {
        let family = if to.is_ipv4() { "-4" } else { "-6" };
        let claims = [family, "route", "replace", "default", "via", gateway, "dev", "eth0", "advmss", "1440"];
        small.namespace().command("ip", &claims).unwrap();
        let listener = small.namespace().enter(|| TcpListener::bind((to, 7000)).unwrap()).unwrap();
        let connect = || TcpStream::connect_timeout(&SocketAddr::new(to, 7000), patience(PATIENCE)).unwrap();
        let mut client = one.namespace().enter(connect).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.set_write_timeout(Some(patience(PATIENCE))).unwrap();
        server.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        let sent: Vec<u8> = (0..PAYLOAD).map(|n| (n / 7) as u8).collect();
        let mut heard = vec![0; PAYLOAD];
        std::thread::scope(|scope| {
            scope.spawn(|| client.write_all(&sent).unwrap());
            uninterrupted(|| server.read_exact(&mut heard)).unwrap_or_else(|error| panic!("{to}: {error}"));
        });
        assert!(heard == sent, "{to}");
        let route = path(one.namespace(), &to.to_string());
        assert!(route.contains(&format!("mtu {SMALL}")), "it was not told: {route}");
    }
}
