//! Addresses from a DHCP server, by the reference IPAM `dhcp`: it finds an interface that works, as behind the reference bridge.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

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
        left.filter(|line| !line.starts_with("pin v1/uplinks/")).collect()
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

#[test]
fn an_add_that_nobody_leases_an_address_to_leaves_nothing() {
    let Some(leasing) = Leasing::begin(Duration::from_secs(1)) else { return };
    leasing.outside.command("ip", &["link", "set", "eth0", "down"]).unwrap();
    let container = Container::create(&leasing.stage.lab, "one").unwrap();
    let node = leasing.stage.node.namespace();
    let refusal = leasing.stage.network.add(node, &container).unwrap_err();
    assert_eq!(leasing.left(), [""; 0], "{refusal:#}");
}
