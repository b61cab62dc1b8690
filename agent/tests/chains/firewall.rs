//! The reference `firewall` after shunt, with its iptables backend.

use std::net::{IpAddr, SocketAddr};

use serde_json::json;
use shunt_lab::{Conversation, Echo, Namespace, Protocol};

use crate::stage::{PORT, Stage, UPLINK, listen};

fn reaches(namespace: &Namespace, address: SocketAddr) -> bool {
    let talk = Conversation::open(namespace, Protocol::Udp, address);
    talk.and_then(|mut talk| talk.chat(3, 500)).is_ok()
}

#[test]
fn a_container_that_the_firewall_accepts_gets_out_of_a_node_that_forwards_nothing_else() {
    let Some(stage) = Stage::set() else { return };
    let plain = stage.shunt();
    let network = stage.shunt().then(json!({ "type": "firewall", "backend": "iptables" }));
    let before = stage.before(&network);
    stage.node.namespace().command("iptables", &["-P", "FORWARD", "DROP"]).unwrap();
    let [accepted, peer] = ["accepted", "peer"].map(|id| stage.add(&network, id));
    let unknown = stage.add(&plain, "unknown");
    let outside = SocketAddr::new(UPLINK[1].parse().unwrap(), PORT);
    let _echo = Echo::listen(&stage.outside, outside.ip(), PORT).unwrap();
    assert!(reaches(accepted.namespace(), outside));
    assert!(!reaches(unknown.namespace(), outside));
    stage.assert_talk(&accepted, &peer);
    stage.assert_fast(&accepted, &peer);
    for sandbox in [&accepted, &peer] {
        stage.remove(&network, sandbox);
    }
    stage.remove(&plain, &unknown);
    stage.node.namespace().command("iptables", &["-P", "FORWARD", "ACCEPT"]).unwrap();
    stage.assert_clean(&before);
}

#[test]
fn bridges_that_the_firewall_keeps_apart_are_apart() {
    let Some(stage) = Stage::set() else { return };
    let firewall = json!({ "type": "firewall", "backend": "iptables", "ingressPolicy": "same-bridge" });
    let network = stage.shunt().then(firewall.clone());
    let other = stage.node.network("others", "cni1", &["10.78.0.0/24"]).then(firewall);
    stage.before(&other);
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let apart = stage.add(&other, "apart");
    stage.assert_talk(&one, &two);
    let address: IpAddr = apart.attachment().ipv4().unwrap().into();
    let _echo = listen(&apart);
    assert!(!reaches(one.namespace(), SocketAddr::new(address, PORT)));
    for sandbox in [&one, &two] {
        stage.remove(&network, sandbox);
    }
    stage.remove(&other, &apart);
    stage.assert_clean(&before);
}
