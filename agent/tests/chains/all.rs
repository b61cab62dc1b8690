//! As long a chain as a careful administrator writes.

use std::net::SocketAddr;

use serde_json::json;

use crate::bandwidth::{BURST, RATE, limited};
use crate::portmap::{HOST_PORT, mapped};
use crate::stage::{Stage, UPLINK};
use crate::tuning::tuning;

#[test]
fn a_chain_of_five_works_and_is_taken_down_in_reverse() {
    let Some(stage) = Stage::set() else { return };
    let rates =
        json!({ "ingressRate": RATE, "ingressBurst": BURST, "egressRate": RATE, "egressBurst": BURST });
    let plain = stage.shunt();
    let network = stage
        .shunt()
        .then(mapped())
        .then(limited(rates))
        .then(json!({ "type": "firewall", "backend": "iptables" }))
        .then(tuning(&stage, None));
    let before = stage.before(&network);
    let server = stage.start(&network, "server");
    let client = stage.add(&plain, "client");
    stage.check(&plain, &server);
    stage.assert_talk(&server, &client);
    let published = SocketAddr::new(UPLINK[0].parse().unwrap(), HOST_PORT);
    stage.assert_served(&stage.outside, &server, published);
    stage.assert_served(client.namespace(), &server, published);
    stage.remove(&network, &server);
    stage.remove(&plain, &client);
    stage.assert_clean(&before);
}
