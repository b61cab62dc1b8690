//! Host ports on a node that has kube-proxy's rules, in both of its modes: host ports, a Service and masquerading answer as on one with the reference's plugins.

use std::net::SocketAddr;

use crate::host_ports::Sides;
use crate::kube_proxy::{Mode, SERVICE_PORT, VIRTUAL};
use crate::questions::{Question, Way, to_host_ports, to_the_outside};
use crate::rules::nft;
use crate::same::lacks_reference;

/// A policy beside it: who may use a host port, and the Service.
const POLICY: &str = nft!(
    "table inet engine { chain forward { type filter hook forward priority 10; policy drop; ct state established,related accept;
    meta l4proto { tcp, udp, sctp } ct status dnat ct original proto-dst { 80, 8000 } accept;
    iifname \"cni0\" oifname \"up0\" accept; }; }"
);

/// What containers, the node and the host outside ask of the Service.
fn to_the_service() -> Vec<Question> {
    let to = SocketAddr::new(VIRTUAL.into(), SERVICE_PORT);
    let clients = ["one", "two", "three", "node", "outside"].into_iter();
    clients.flat_map(|client| [Way::Tcp, Way::Udp].map(|way| Question { client, way, to })).collect()
}

/// All that differs with and without the policy.
fn differences(mode: Mode) -> Vec<String> {
    let sides = Sides::start();
    for side in sides.both() {
        // What is for the Service leaves for somewhere, before it is led to its endpoint.
        side.node.namespace().command("ip", &["route", "add", "default", "via", "192.0.2.9"]).unwrap();
        side.outside.command("ip", &["route", "add", "10.96.0.0/16", "via", "192.0.2.1"]).unwrap();
    }
    sides.run("clear");
    for side in sides.both() {
        mode.install(side.node.namespace(), side.sandboxes[1].attachment().ipv4().unwrap());
    }
    let questions = [to_host_ports(), to_the_outside(), to_the_service()].concat();
    let mut found = Vec::new();
    for (name, script) in [("beside kube-proxy", "true"), ("beside kube-proxy and a policy", POLICY)] {
        sides.run(script);
        let (differ, answered) = sides.compare(&questions);
        found.extend(differ.iter().map(|it| format!("{mode:?}, {name}: {it}")));
        println!("{mode:?}, {name}: {answered} of {} answered", questions.len());
    }
    found
}

#[test]
fn host_ports_beside_kube_proxy_by_iptables_are_as_behind_portmap() {
    if !lacks_reference() {
        assert_eq!(differences(Mode::Iptables), Vec::<String>::new());
    }
}

#[test]
fn host_ports_beside_kube_proxy_by_nftables_are_as_behind_portmap() {
    if !lacks_reference() {
        assert_eq!(differences(Mode::Nftables), Vec::<String>::new());
    }
}
