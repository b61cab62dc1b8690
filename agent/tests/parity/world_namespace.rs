//! A network namespace with the interfaces, routes and sockets of the golden world.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};

use crate::golden::{outside, world};

/// Runs `test` in a network namespace of its own that has an interface for each ifindex of the world. It goes with the
/// thread, however the thread ends.
pub(crate) fn in_world_namespace(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            let ifindexes = world::places()
                .map(|place| place.ifindex)
                .chain(["stranger", "master", "parent"].map(world::ifindex));
            for ifindex in ifindexes {
                let index = ifindex.to_string();
                let name = format!("w{index}");
                ip(&["link", "add", &name, "index", &index, "up", "type", "bridge"]);
            }
            make_uplink();
            make_filtered();
            let _sockets = sockets();
            test();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The uplink with the node's addresses, and a bridge that the kernel routes from.
fn make_uplink() {
    let mac = format_mac(outside::UPLINK_MAC);
    let index = outside::UPLINK.to_string();
    ip(&[
        "link", "add", "uplink", "index", &index, "address", &mac, "type", "veth", "peer", "name", "beyond",
    ]);
    for name in ["uplink", "beyond"] {
        ip(&["link", "set", name, "up"]);
    }
    for (address, length) in outside::NODE {
        let address = format!("{address}/{length}");
        let at_once: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
        ip(&[&["address", "add", &address, "dev", "uplink"], at_once].concat());
    }
    let bridge = format!("w{}", world::BRIDGE);
    // This one only: a bridge that is given an address loses its carrier, and nothing is flooded by way of it.
    ip(&["link", "set", &bridge, "address", &format_mac(world::mac(world::BRIDGE))]);
    for address in world::PLACES.iter().find(|place| place.name == "alpha").expect("a place").addresses() {
        ip(&["route", "add", &address.to_string(), "dev", &bridge]);
    }
    for (family, beyond, aside) in
        [("-4", "198.51.100.0/24", "203.0.113.0/24"), ("-6", "2001:db8:1::/64", "2001:db8:2::/64")]
    {
        let containers = if family == "-4" { "10.9.0.0/16" } else { "fd09::/64" };
        ip(&[family, "route", "add", beyond, "dev", "uplink", "table", "100"]);
        ip(&[family, "rule", "add", "from", containers, "table", "100"]);
        ip(&[family, "route", "add", aside, "dev", &format!("w{}", world::OTHER_BRIDGE)]);
    }
    for family in ["ipv4", "ipv6"] {
        let forwarding = format!("/proc/sys/net/{family}/conf/w{}/forwarding", world::BRIDGE);
        std::fs::write(&forwarding, "1").unwrap_or_else(|error| panic!("{forwarding}: {error}"));
    }
}

/// The interfaces at which sources are filtered, and the routes that lead out of them.
fn make_filtered() {
    for ((name, ifindex), behind) in outside::FILTERED.into_iter().zip(outside::BEHIND) {
        let (index, mac) = (ifindex.to_string(), format_mac(world::mac(ifindex)));
        ip(&["link", "add", name, "index", &index, "address", &mac, "up", "type", "bridge"]);
        ip(&["route", "add", &format!("{behind}/24"), "dev", name]);
    }
    std::fs::write("/proc/sys/net/ipv4/conf/lo/forwarding", "1").expect("a setting");
    ip(&[
        "route",
        "add",
        &format!("{}/24", outside::MULTIPATH),
        "nexthop",
        "via",
        "198.18.3.1",
        "dev",
        "hop1",
        "onlink",
        "nexthop",
        "via",
        "198.18.4.1",
        "dev",
        "hop2",
        "onlink",
    ]);
}

/// Sockets of the node's own.
fn sockets() -> (UdpSocket, TcpListener) {
    let any = (Ipv6Addr::UNSPECIFIED, outside::SOCKET);
    (UdpSocket::bind(any).expect("a port of UDP"), TcpListener::bind(any).expect("a port of TCP"))
}

fn format_mac(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn ip(arguments: &[&str]) {
    let made = Command::new("ip").args(arguments).status();
    assert!(made.expect("ip runs").success(), "ip {}", arguments.join(" "));
}
