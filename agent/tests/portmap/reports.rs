//! What the agent says of host ports and of the connections that came by them, and how those are forgotten.

use std::net::IpAddr;

use serde_json::{Value, json};
use shunt_lab::Protocol;

use crate::stage::{NODE, OUTSIDE, Stage, mapping};

fn ask(stage: &Stage, verb: &str) -> Vec<Value> {
    stage.node.agent().ask(verb).unwrap().as_array().unwrap().clone()
}

#[test]
fn host_ports_and_their_connections_are_told() {
    let mut stage = Stage::new();
    let mut specific = mapping(8081, 7000, "udp");
    specific["hostIP"] = NODE[1].into();
    stage.add("one", &[mapping(8080, 7000, "tcp"), specific]);
    stage.add("two", &[]);
    let _echo = stage.echo(0, 7000);
    let mut tcp = stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080);
    let mut udp = stage.open(&stage.outside, Protocol::Udp, NODE[1], 8081);
    let mut neighbor = stage.open(stage.sandboxes[1].namespace(), Protocol::Tcp, NODE[0], 8080);
    for talk in [&mut tcp, &mut udp, &mut neighbor] {
        talk.chat(3, 100).unwrap();
    }
    let [v4, v6]: [IpAddr; 2] = stage.sandboxes[0].addresses().try_into().unwrap();
    let mappings = ask(&stage, "mappings");
    assert_eq!(mappings.len(), 2, "{mappings:?}");
    let told = json!({ "proto": "tcp", "host_ip": null, "host_port": 8080, "network": "pods", "container": "one",
        "ifname": "eth0", "container_ips": [v4, v6], "container_port": 7000, "connections": 2 });
    assert_eq!(mappings[0], told);
    let only = (&mappings[1]["host_ip"], &mappings[1]["container_ips"], &mappings[1]["connections"]);
    assert_eq!(only, (&json!(NODE[1]), &json!([v6]), &json!(1)));

    let flows = ask(&stage, "flows");
    assert_eq!(flows.len(), 3, "{flows:?}");
    let of = |src: &str| flows.iter().find(|flow| flow["src"] == src).unwrap();
    let (outside, other) = (of(OUTSIDE[0]), of(&stage.sandboxes[1].addresses()[0].to_string()));
    assert_eq!((&outside["state"], &outside["dport"]), (&json!("established"), &json!(8080)));
    assert_eq!(outside["translated"]["src"], OUTSIDE[0], "the client's own address");
    let (packets, bytes) = (outside["packets"].as_u64().unwrap(), outside["bytes"].as_u64().unwrap());
    assert!(
        packets >= 9 && bytes > 600 + 14 * packets,
        "three handshakes' and six payloads': {packets} {bytes}"
    );
    assert_eq!((&outside["translated"]["dst"], &outside["translated"]["dport"]), (&json!(v4), &json!(7000)));
    assert_eq!(other["translated"]["src"], NODE[0], "a neighbour's is the node's");
    let left = outside["expires_seconds"].as_u64().unwrap();
    assert!((7_000..=7_440).contains(&left), "two hours and four minutes from the last packet: {left}");
    drop(tcp);
    stage.wait_until("the closed connection is told as closing or closed", |agent| {
        let flows = agent.ask("flows").unwrap();
        flows.as_array().unwrap().iter().any(|flow| flow["state"] == "closed" || flow["state"] == "closing")
    });
}

#[test]
fn the_connections_of_a_deleted_container_are_swept() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let echo = stage.echo(0, 7000);
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        stage.open(&stage.outside, protocol, NODE[0], 8080).chat(3, 100).unwrap();
    }
    assert_eq!(ask(&stage, "flows").len(), 2);
    drop(echo);
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    assert_eq!(ask(&stage, "mappings"), Vec::<Value>::new());
    // The sweep comes at the next look, and not with the next of every ten seconds.
    stage.wait_until("nothing is remembered", |agent| agent.ask("flows").unwrap() == json!([]));
}

#[test]
fn rules_for_forwarded_packets_that_are_gone_past_are_told() {
    const WHO: &str = "the chain forward of the table admin";
    let mut stage = Stage::new();
    let told = |stage: &Stage| {
        let warnings = stage.node.agent().status().unwrap().warnings;
        ["host ports", "one bridge"]
            .map(|what| warnings.iter().any(|told| told.contains(what) && told.contains(WHO)))
    };
    let bridged = |stage: &Stage, value: &str| {
        let names = ["iptables", "ip6tables"].map(|table| format!("net/bridge/bridge-nf-call-{table}"));
        names.iter().all(|name| stage.node.namespace().sysctl(name, value).is_ok())
    };
    let nft = |stage: &Stage, command: &str| drop(stage.node.namespace().command("nft", &[command]).unwrap());
    let has_br_netfilter = bridged(&stage, "0");
    nft(&stage, "add table ip admin");
    nft(&stage, "add chain ip admin forward { type filter hook forward priority 0; }");
    stage.add("one", &[]);
    stage.add("two", &[mapping(8080, 7000, "tcp")]);
    assert_eq!(told(&stage), [false, false], "they are nobody's yet");
    nft(&stage, "add rule ip admin forward tcp dport 7000 drop");
    assert_eq!(told(&stage), [true, false]);
    // And it is true.
    let _echo = stage.echo(1, 7000);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(3, 100).unwrap();
    if bridged(&stage, "1") {
        assert_eq!(told(&stage), [true, true]);
    }
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    assert_eq!(told(&stage), [false, has_br_netfilter]);
    nft(&stage, "delete table ip admin");
    assert_eq!(told(&stage), [false, false]);
    assert!(stage.node.agent().status().unwrap().healthy);
}
