//! The reference `sbr` after shunt: the container's routes move to a table for packets with its source address.

use std::net::UdpSocket;
use std::time::Duration;

use serde_json::json;
use shunt_lab::{Sandbox, uninterrupted};

use crate::stage::{Stage, listen};

const ROUNDS: u64 = 300;

/// Says something and hears it back, from a socket that has its source address from the beginning: without one there is
/// no route.
fn talk_with_source(client: &Sandbox, server: &Sandbox) {
    let echo = listen(server);
    let own = client.attachment().ipv4().unwrap();
    let socket = client.namespace().enter(|| UdpSocket::bind((own, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    socket.connect(echo.address()).unwrap();
    for round in 0..ROUNDS {
        socket.send(&round.to_be_bytes()).unwrap();
        let mut heard = [0; 8];
        uninterrupted(|| socket.recv(&mut heard)).unwrap();
        assert_eq!(u64::from_be_bytes(heard), round);
    }
}

#[test]
fn routes_by_source_are_set_and_fast_traffic_follows_them() {
    let Some(stage) = Stage::set() else { return };
    let network = stage.shunt().then(json!({ "type": "sbr" }));
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let rules = one.namespace().command("ip", &["rule", "show"]).unwrap();
    assert!(rules.contains(&format!("from {}", one.attachment().ipv4().unwrap())), "{rules}");
    for (client, server) in [(&one, &two), (&two, &one)] {
        let fast = stage.port(client).from.fast;
        talk_with_source(client, server);
        assert!(stage.port(client).from.fast >= fast + ROUNDS - 3);
    }
    for sandbox in [&one, &two] {
        stage.remove(&network, sandbox);
    }
    stage.assert_clean(&before);
}
