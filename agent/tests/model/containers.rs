//! The containers of the model, by their keys: their names, links and ports.

use std::thread;
use std::time::{Duration, Instant};

use nix::net::if_::InterfaceFlags;
use shunt_agent_api::{
    AttachmentKey, Bandwidth, BridgePort, Interface, PortMapping, Protocol, Rate, Restrictions, Service,
};
use shunt_lab::{Namespace, run};

use crate::steps::RICH;

pub(crate) const BRIDGE: &str = "br0";

/// How long the agent may take to delete a link, or its pins after it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn ip(arguments: &[&str]) {
    run("ip", arguments).unwrap();
}

pub(crate) fn name(key: u8) -> AttachmentKey {
    AttachmentKey { network: "net".into(), container: format!("c{key}"), ifname: peer(key) }
}

pub(crate) fn host(key: u8) -> String {
    format!("veth{key}")
}

/// Whether the agent is to set the host's end up; the others' are up when it hears of them.
pub(crate) fn leaves_down(key: u8) -> bool {
    key == 0 || key == RICH
}

pub(crate) fn peer(key: u8) -> String {
    format!("peer{key}")
}

pub(crate) fn is_up(key: u8) -> bool {
    let mut links = nix::ifaddrs::getifaddrs().unwrap().filter(|link| link.interface_name == host(key));
    links.any(|link| link.flags.contains(InterfaceFlags::IFF_UP))
}

pub(crate) fn is_there(key: u8) -> bool {
    nix::net::if_::if_nametoindex(host(key).as_str()).is_ok()
}

pub(crate) fn interface(name: &str) -> Interface {
    Interface { name: name.to_owned(), index: nix::net::if_::if_nametoindex(name).unwrap() }
}

/// The agent deletes a link beside its own work; where it has died, or could not, the plugin does.
pub(crate) fn delete(key: u8, died: bool) {
    let begun = Instant::now();
    while is_there(key) && !died && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    remove(key);
}

pub(crate) fn remove(key: u8) {
    if is_there(key) {
        // The agent may be at it, too.
        drop(run("ip", &["link", "delete", &host(key)]));
        assert!(!is_there(key));
    }
}

/// The container's port, whose link is made if there is none; its other end is `inside`.
pub(crate) fn port(key: u8, inside: &Namespace) -> BridgePort {
    let (host, mac) = (host(key), format!("02:00:00:00:00:{key:02x}"));
    if !is_there(key) {
        let (peer, path) = (peer(key), inside.path().to_str().unwrap());
        ip(&["link", "add", &host, "type", "veth", "peer", "name", &peer, "address", &mac, "netns", path]);
        ip(&["link", "set", &host, "master", BRIDGE, if leaves_down(key) { "down" } else { "up" }]);
        inside.command("ip", &["link", "set", &peer, "up"]).unwrap();
    }
    let plain = BridgePort {
        lease_dir: None,
        vlan: None,
        pod: None,
        key: name(key),
        bridge: interface(BRIDGE),
        host: interface(&host),
        mac,
        ips: vec![format!("10.88.0.{}", key + 2).parse().unwrap()],
        mtu: 1500,
        netns: None,
        peer_up: true,
        masquerade: Vec::new(),
        unmasqueraded: Vec::new(),
        restrictions: Restrictions::default(),
        mappings: Vec::new(),
        bandwidth: Bandwidth::default(),
        service: Service::default(),
    };
    if key == RICH { enriched(plain) } else { plain }
}

fn enriched(port: BridgePort) -> BridgePort {
    let mapping = PortMapping {
        protocol: Protocol::Tcp,
        host_ip: None,
        host_port: 8080,
        container_port: 80,
        masquerade: true,
        keeps_source: false,
    };
    let ingress = Some(Rate { rate: 100_000_000, burst: 5_000_000 });
    BridgePort {
        masquerade: vec!["10.88.0.0/16".into()],
        restrictions: Restrictions {
            isolated: true,
            mac_check: true,
            ip_check: true,
            ..Restrictions::default()
        },
        mappings: vec![mapping],
        bandwidth: Bandwidth { ingress, shaped: vec!["192.0.2.0/24".into()], ..Bandwidth::default() },
        ..port
    }
}
