//! The reference `portmap` after shunt: what the node translates reaches the container, and the answer finds back.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};

use crate::stage::{PORT, Stage, UPLINK};

/// The node's port that leads to [`PORT`] of a container.
pub(crate) const HOST_PORT: u16 = 8080;

/// The plugin with mappings for TCP and UDP.
pub(crate) fn mapped() -> Value {
    let mapping = |protocol| json!({ "hostPort": HOST_PORT, "containerPort": PORT, "protocol": protocol });
    let mappings = [mapping("tcp"), mapping("udp")];
    json!({ "type": "portmap", "capabilities": { "portMappings": true }, "runtimeConfig": { "portMappings": mappings } })
}

#[test]
fn a_mapped_port_answers_from_outside_from_the_node_and_from_its_containers() {
    let Some(stage) = Stage::set() else { return };
    // br_netfilter sends what the server gets from itself back to the port that it came from.
    let plain = stage.shunt().with("hairpinMode", json!(true));
    let network = plain.clone().then(mapped());
    let before = stage.before(&network);
    let server = stage.start(&network, "server");
    // Debian's portmap looks for its IPv4 rules among IPv6's when it is asked: only shunt is.
    stage.check(&plain, &server);
    let client = stage.add(&plain, "client");
    let gateway = server.attachment().result["ips"][0]["gateway"].as_str().unwrap().to_owned();
    let uplink: IpAddr = UPLINK[0].parse().unwrap();
    stage.assert_served(&stage.outside, &server, SocketAddr::new(uplink, HOST_PORT));
    for address in [uplink, gateway.parse().unwrap()] {
        let address = SocketAddr::new(address, HOST_PORT);
        for namespace in [stage.node.namespace(), client.namespace(), server.namespace()] {
            stage.assert_served(namespace, &server, address);
        }
    }
    // Without the mapping they are as fast as ever.
    stage.assert_talk(&server, &client);
    stage.assert_fast(&server, &client);
    stage.remove(&network, &server);
    stage.remove(&plain, &client);
    stage.assert_clean(&before);
}

/// The answer goes straight from one container to the other unless the flow is left to the kernel.
#[test]
fn a_mapped_port_answers_a_container_whose_address_is_not_masqueraded() {
    let Some(stage) = Stage::set() else { return };
    stage.node.namespace().sysctl("net/bridge/bridge-nf-call-iptables", "1").unwrap();
    let mut portmap = mapped();
    portmap["snat"] = json!(false);
    let plain = stage.shunt();
    let network = stage.shunt().then(portmap);
    let before = stage.before(&network);
    let server = stage.start(&network, "server");
    // Debian's portmap looks for its IPv4 rules among IPv6's when it is asked: only shunt is.
    stage.check(&plain, &server);
    let client = stage.add(&plain, "client");
    let address = SocketAddr::new(UPLINK[0].parse().unwrap(), HOST_PORT);
    stage.assert_served(client.namespace(), &server, address);
    stage.assert_talk(&server, &client);
    stage.remove(&network, &server);
    stage.remove(&plain, &client);
    stage.assert_clean(&before);
}
