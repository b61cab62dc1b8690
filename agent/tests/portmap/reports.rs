//! What the agent says of host ports and of the connections that came by them, and how those are forgotten.

use std::net::IpAddr;

use aya::maps::{HashMap, Map, MapData};
use serde_json::{Value, json};
use shunt_dataplane::abi::ABI_VERSION;
use shunt_dataplane::abi::translation::{Translation, TupleKey};
use shunt_lab::Protocol;

use crate::stage::{GATEWAY, NODE, OUTSIDE, Stage, mapping};

fn ask(stage: &Stage, verb: &str) -> Vec<Value> {
    stage.node.agent().ask(verb).unwrap().as_array().unwrap().clone()
}

/// Packets and bytes.
fn volume(mapping: &Value, way: &str) -> (u64, u64) {
    (mapping[way]["packets"].as_u64().unwrap(), mapping[way]["bytes"].as_u64().unwrap())
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
        "ifname": "eth0", "container_ips": [v4, v6], "container_port": 7000, "kernel": false, "connections": 2,
        "from": mappings[0]["from"], "to": mappings[0]["to"] });
    assert_eq!(mappings[0], told);
    for mapping in &mappings {
        assert!(
            volume(mapping, "to").0 >= 3 && volume(mapping, "from").0 >= 3,
            "three payloads' at least: {mapping}"
        );
    }
    let only = (&mappings[1]["host_ip"], &mappings[1]["container_ips"], &mappings[1]["connections"]);
    assert_eq!(only, (&json!(NODE[1]), &json!([v6]), &json!(1)));

    let flows = ask(&stage, "flows");
    assert_eq!(flows.len(), 3, "{flows:?}");
    // An acknowledgement may come between the two questions.
    stage.wait_until("a host port's volumes are its connections'", |agent| {
        let [flows, mappings] = ["flows", "mappings"].map(|verb| agent.ask(verb).unwrap());
        mappings.as_array().unwrap().iter().zip(["tcp", "udp"]).all(|(mapping, proto)| {
            let of = flows.as_array().unwrap().iter().filter(|flow| flow["proto"] == proto);
            let sum = |field: &str| of.clone().map(|flow| flow[field].as_u64().unwrap()).sum::<u64>();
            let [from, to] = ["from", "to"].map(|way| volume(mapping, way));
            (from.0 + to.0, from.1 + to.1) == (sum("packets"), sum("bytes"))
        })
    });
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
    assert_eq!(other["translated"]["src"], GATEWAY[0], "a neighbour's is the node's");
    let left = outside["expires_seconds"].as_u64().unwrap();
    assert!((431_500..=432_000).contains(&left), "five days from the last packet: {left}");
    drop(tcp);
    stage.wait_until("the closed connection is told as closing or closed", |agent| {
        let flows = agent.ask("flows").unwrap();
        flows.as_array().unwrap().iter().any(|flow| flow["state"] == "closed" || flow["state"] == "closing")
    });
}

#[test]
fn what_came_by_a_host_port_is_told_after_its_connections_are_over() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    for (protocol, node) in [(Protocol::Tcp, NODE[0]), (Protocol::Udp, NODE[1])] {
        stage.open(&stage.outside, protocol, node, 8080).chat(3, 100).unwrap();
    }
    let volumes = |stage: &Stage| {
        let told = ask(stage, "mappings");
        [0, 1].map(|at| ["from", "to"].map(|way| volume(&told[at], way)))
    };
    // The last segments of a close may be on their way yet.
    stage.wait_until("the connection is closed on both sides", |agent| {
        let flows = agent.ask("flows").unwrap();
        flows.as_array().unwrap().iter().any(|flow| flow["state"] == "closed")
    });
    let before = volumes(&stage);
    assert!(before.iter().flatten().all(|(packets, bytes)| *packets >= 3 && *bytes >= 300), "{before:?}");

    // As if nothing had come for longer than any is remembered.
    let pin = stage.node.agent().bpffs().join(format!("v{ABI_VERSION}/maps/FLOWS"));
    let map = Map::LruHashMap(MapData::from_pin(pin).unwrap());
    let mut flows = HashMap::<_, TupleKey, Translation>::try_from(map).unwrap();
    let entries: Vec<_> = flows.iter().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 4, "two connections' both ways");
    for (key, flow) in entries {
        flows.insert(key, Translation { touched: 1, ..flow }, 0).unwrap();
    }
    stage.wait_until("nothing is remembered", |agent| agent.ask("flows").unwrap() == json!([]));
    assert_eq!(volumes(&stage), before);
    stage.open(&stage.outside, Protocol::Udp, NODE[1], 8080).chat(3, 100).unwrap();
    let after = volumes(&stage);
    assert_eq!(after[0], before[0]);
    assert!(
        after[1].iter().zip(before[1]).all(|(after, before)| after.0 >= before.0 + 3),
        "{after:?} {before:?}"
    );

    // The next one's counts are its own.
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    stage.add("two", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    assert_eq!(volumes(&stage), [[(0, 0); 2]; 2]);
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
