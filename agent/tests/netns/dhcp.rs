//! Addresses from a DHCP server, by the reference IPAM `dhcp`: it finds an interface that works, as behind the reference bridge.

use std::fs::Permissions;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Container, Namespace};

use crate::dhcp_service::{ANSWER, Client, Server};
use crate::stage::Stage;
use crate::uplinks;

/// The server's address.
const AT: &str = "10.99.0.1";

/// A network with an uplink to a DHCP server, and what serves it.
struct Leasing {
    stage: Stage,
    server: Server,
    outside: Namespace,
    _client: Client,
}

impl Leasing {
    fn begin(waits: Duration) -> Option<Self> {
        let (mut stage, outside) = uplinks::stage();
        let client = Client::start(&stage.lab, &stage.node, waits)?;
        outside.command("ip", &["address", "add", &format!("{AT}/24"), "dev", "eth0"]).unwrap();
        let server = Server::start(&stage.lab, &outside, AT, ["10.99.0.100", "10.99.0.103"]);
        stage.network = stage.network.with("ipam", client.ipam());
        Some(Self { stage, server, outside, _client: client })
    }

    /// What is there that was not before the first container, but for the programs of the uplink, which stays one.
    fn left(&self) -> Vec<String> {
        let left = self.stage.left().into_iter();
        left.filter(|line| !line.starts_with("pin v2/uplinks/")).collect()
    }
}

#[test]
fn containers_lease_addresses_talk_and_give_them_back() {
    let Some(mut leasing) = Leasing::begin(ANSWER) else { return };
    leasing.stage.add("one");
    leasing.stage.add("two");
    leasing.server.wait_for_leases(2);
    for sandbox in &leasing.stage.sandboxes {
        leasing.server.assert_leased(&sandbox.addresses());
        let port = leasing.stage.node.agent().port(sandbox.id()).unwrap();
        assert_eq!(port.ips, sandbox.addresses(), "the agent knows them");
        let (node, result) = (leasing.stage.node.namespace(), &sandbox.attachment().result);
        leasing.stage.network.check(node, sandbox.container(), result).unwrap();
    }
    leasing.stage.assert_talk(0, 1);
    for sandbox in std::mem::take(&mut leasing.stage.sandboxes) {
        sandbox.delete(&leasing.stage.node, &leasing.stage.network).unwrap();
    }
    leasing.server.wait_for_leases(0);
    assert_eq!(leasing.left(), [""; 0]);
}

#[test]
fn restricted_containers_lease_addresses_and_are_held_to_them() {
    let Some(mut leasing) = Leasing::begin(ANSWER) else { return };
    for key in ["ipspoofchk", "macspoofchk", "portIsolation"] {
        leasing.stage.network = leasing.stage.network.clone().with(key, json!(true));
    }
    leasing.stage.add("one");
    let sandbox = &leasing.stage.sandboxes[0];
    leasing.server.assert_leased(&sandbox.addresses());
    let listener = leasing.outside.enter(|| TcpListener::bind((AT, 80)).unwrap()).unwrap();
    let connect = |waits: u64| {
        let to = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(waits)).map(drop);
        sandbox.namespace().enter(connect).unwrap()
    };
    connect(10).unwrap();
    let [own, other] = [sandbox.addresses()[0].to_string(), "10.99.0.77".to_owned()];
    let ip = |verb: &str, address: &str| {
        sandbox
            .namespace()
            .command("ip", &["address", verb, &format!("{address}/24"), "dev", "eth0"])
            .unwrap()
    };
    ip("del", &own);
    ip("add", &other);
    connect(1).unwrap_err();
}

/// Neighbours that still know another station by a leased address hear of the new one, as from a link that comes up.
#[test]
fn an_address_that_is_leased_is_announced() {
    let Some(mut leasing) = Leasing::begin(ANSWER) else { return };
    leasing.outside.sysctl("net/ipv4/conf/eth0/arp_accept", "1").unwrap();
    leasing.stage.add("one");
    let own = leasing.stage.sandboxes[0].addresses()[0].to_string();
    let mac = leasing.stage.node.agent().port("one").unwrap().mac;
    let begun = Instant::now();
    let known = || leasing.outside.command("ip", &["neighbour", "show", "to", &own]).unwrap();
    while !known().contains(&mac) {
        assert!(begun.elapsed() < ANSWER, "its neighbour knows of {own}: {}", known());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_add_that_nobody_leases_an_address_to_leaves_nothing() {
    let Some(leasing) = Leasing::begin(Duration::from_secs(1)) else { return };
    leasing.outside.command("ip", &["link", "set", "eth0", "down"]).unwrap();
    let container = Container::create(&leasing.stage.lab, "one").unwrap();
    let node = leasing.stage.node.namespace();
    let refusal = leasing.stage.network.add(node, &container).unwrap_err();
    assert_eq!(leasing.left(), [""; 0], "{refusal:#}");
}

/// What the agent refuses comes after the lease: it is known only then whether the container has an address of the port's family.
#[test]
fn an_add_that_is_refused_after_the_lease_gives_it_back() {
    let Some(mut leasing) = Leasing::begin(ANSWER) else { return };
    let mapping = json!([{ "hostPort": 8080, "containerPort": 80, "protocol": "tcp" }]);
    leasing.stage.network = leasing.stage.network.with("runtimeConfig", json!({ "portMappings": mapping }));
    leasing.stage.add("one");
    leasing.server.wait_for_leases(1);
    let container = Container::create(&leasing.stage.lab, "two").unwrap();
    let node = leasing.stage.node.namespace();
    let refusal = format!("{:#}", leasing.stage.network.add(node, &container).unwrap_err());
    assert!(refusal.contains("8080"), "{refusal}");
    // The server writes its leases down every second.
    std::thread::sleep(Duration::from_secs(2));
    leasing.server.wait_for_leases(1);
    let links = container.namespace().command("ip", &["-oneline", "link", "show"]).unwrap();
    assert_eq!(links.lines().count(), 1, "{links}");
    assert_eq!(leasing.stage.node.agent().status().unwrap().attachments, 1);
}

#[test]
#[ignore = "waits for more than a minute: xtask test --long"]
fn an_ipam_may_take_longer_than_the_agent_keeps_a_silent_connection() {
    let mut stage = Stage::empty();
    let slow = stage.node.plugins().join("slow");
    let result = json!({ "cniVersion": "1.0.0", "ips": [{ "address": "10.77.0.9/24" }] });
    let script =
        format!("#!/bin/sh\ncat >/dev/null\n[ $CNI_COMMAND = ADD ] || exit 0\nsleep 63\necho '{result}'\n");
    std::fs::write(&slow, script).unwrap();
    std::fs::set_permissions(&slow, Permissions::from_mode(0o755)).unwrap();
    stage.network = stage.network.with("ipam", json!({ "type": "slow" }));
    stage.add("one");
    assert_eq!(stage.node.agent().port("one").unwrap().ips, stage.sandboxes[0].addresses());
    let sandbox = stage.sandboxes.remove(0);
    sandbox.delete(&stage.node, &stage.network).unwrap();
    assert_eq!(stage.left(), [""; 0]);
}
