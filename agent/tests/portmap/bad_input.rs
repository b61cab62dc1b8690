//! Host ports that cannot be had: refused by name, and nothing is half done.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use shunt_agent_api::{AttachmentKey, Client, PortMapping, Request};
use shunt_lab::{Protocol, Sandbox};

use crate::stage::{NODE, Stage, address, mapping};

#[test]
fn a_port_that_another_container_has_is_refused_and_nothing_changes() {
    let mut stage = Stage::new();
    let mut specific = mapping(8081, 7000, "tcp");
    specific["hostIP"] = NODE[0].into();
    stage.add("one", &[mapping(8080, 7000, "tcp"), specific.clone()]);
    let before = stage.node.inventory().unwrap();
    for wanted in [
        vec![mapping(8080, 80, "tcp")],
        vec![mapping(9000, 80, "tcp"), mapping(8080, 80, "tcp")],
        // Every address's port is each address's.
        vec![mapping(8081, 80, "tcp")],
        vec![specific],
    ] {
        let (code, text) = stage.refused(&stage.mapped(&wanted), &format!("no{}", text_id(&wanted)));
        assert_eq!(code, 102, "{text}");
        assert!(text.contains("pods/one/eth0") && text.contains("/tcp"), "whose it is: {text}");
        assert_eq!(stage.node.inventory().unwrap().since(&before), Vec::<String>::new(), "{wanted:?}");
    }
    // Another protocol's port of the same number is another port.
    stage.add("two", &[mapping(8080, 80, "udp"), mapping(9000, 80, "tcp")]);
}

#[test]
fn a_port_of_every_address_of_one_family_is_another_than_that_of_the_other_family() {
    let mut stage = Stage::new();
    let at = |ip: &str, host_port: u16, container_port: u16| {
        let mut mapping = mapping(host_port, container_port, "tcp");
        mapping["hostIP"] = ip.into();
        mapping
    };
    stage.add("one", &[at("0.0.0.0", 8080, 7000), at("::", 8080, 7000), at("::", 8081, 7000)]);
    let _echo = stage.echo(0, 7000);
    for (to, port) in [(NODE[0], 8080), (NODE[1], 8080), (NODE[1], 8081)] {
        stage.open(&stage.outside, Protocol::Tcp, to, port).chat(5, 100).unwrap();
    }
    let to = (address(NODE[0]), 8081).into();
    let refused = stage.outside.enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(10))).unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let told = stage.node.agent().ask("mappings").unwrap();
    let told: Vec<_> =
        told.as_array().unwrap().iter().map(|it| (&it["host_ip"], &it["connections"])).collect();
    let wanted = [("0.0.0.0", 1), ("::", 1), ("::", 1)].map(|(ip, count)| (json!(ip), json!(count)));
    assert_eq!(told, wanted.each_ref().map(|(ip, count)| (ip, count)));
    let sandbox = &stage.sandboxes[0];
    let network = stage.mapped(&[at("0.0.0.0", 8080, 7000), at("::", 8080, 7000), at("::", 8081, 7000)]);
    network.check(stage.node.namespace(), sandbox.container(), &sandbox.attachment().result).unwrap();

    for (wanted, code) in [
        (vec![at("0.0.0.0", 9000, 7000), at("0.0.0.0", 9000, 7000)], 7),
        (vec![at("0.0.0.0", 9000, 7000), mapping(9000, 7000, "tcp")], 7),
        (vec![at("::", 8081, 7000)], 102),
        (vec![mapping(8081, 7000, "tcp")], 102),
        (vec![at(NODE[0], 8080, 7000)], 102),
    ] {
        let (told, text) = stage.refused(&stage.mapped(&wanted), &format!("no{}", text_id(&wanted)));
        assert_eq!(told, code, "{wanted:?}: {text}");
    }
    // Two ports of one container, and two containers.
    stage.add("two", &[at("0.0.0.0", 8081, 7000), at("0.0.0.0", 9000, 7000), at("::", 9000, 7001)]);
    let _others = [stage.echo(1, 7000), stage.echo(1, 7001)];
    for (to, port, answers) in
        [(NODE[0], 8081, 1), (NODE[1], 8081, 0), (NODE[0], 9000, 1), (NODE[1], 9000, 1), (NODE[0], 8080, 0)]
    {
        let before = stage.node.agent().port(["one", "two"][answers]).unwrap().to.fast;
        stage.open(&stage.outside, Protocol::Tcp, to, port).chat(20, 100).unwrap();
        let after = stage.node.agent().port(["one", "two"][answers]).unwrap().to.fast;
        assert!(after - before >= 20, "{to} {port}: {before} {after}");
        // The node's own sockets are led the same way.
        stage.open(stage.node.namespace(), Protocol::Tcp, to, port).chat(20, 100).unwrap();
        assert!(
            stage.node.agent().port(["one", "two"][answers]).unwrap().to.fast - after >= 20,
            "{to} {port}"
        );
    }
    stage.sandboxes.remove(0).delete(&stage.node, &network).unwrap();
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8081).chat(5, 100).unwrap();
    let to = (address(NODE[1]), 8081).into();
    let refused = stage.outside.enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(10))).unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn an_ipv4_address_written_as_ipv6_does_is_the_same_address() {
    let mut stage = Stage::new();
    let written = |at: &str| {
        let mut mapping = mapping(8081, 7000, "tcp");
        mapping["hostIP"] = at.into();
        mapping
    };
    let mapped = format!("::ffff:{}", NODE[0]);
    stage.add("one", &[written(NODE[0])]);
    stage.add("two", &[]);
    let _echo = stage.echo(0, 7000);
    let (code, text) = stage.refused(&stage.mapped(&[written(&mapped)]), "three");
    assert_eq!(code, 102, "{text}");
    assert!(text.contains("pods/one/eth0"), "{text}");
    let asked = PortMapping {
        protocol: shunt_agent_api::Protocol::Tcp,
        host_ip: Some(address(&mapped)),
        host_port: 8081,
        container_port: 80,
        masquerade: false,
        keeps_source: false,
    };
    let key = AttachmentKey { network: "pods".into(), container: "two".into(), ifname: "eth0".into() };
    let mut agent = Client::connect(stage.node.agent().socket()).unwrap();
    let refusal = agent.ask(Request::Map { key, mappings: vec![asked] }).unwrap_err();
    assert!(refusal.to_string().contains("pods/one/eth0"), "{refusal}");
    // What is refused takes nothing away when it goes.
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8081).chat(5, 100).unwrap();
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    stage.add("four", &[written(&mapped)]);
    let _echo = stage.echo(0, 7000);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8081).chat(5, 100).unwrap();
    let told = stage.node.agent().ask("mappings").unwrap();
    assert_eq!(told[0]["host_ip"], NODE[0], "{told}");
}

#[test]
fn mappings_that_cannot_be_meant_are_refused() {
    let stage = Stage::new();
    let before = stage.node.inventory().unwrap();
    let host = |value: Value| json!({ "hostPort": value, "containerPort": 80, "protocol": "tcp" });
    let at = |ip: &str| json!({ "hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": ip });
    let cases = [
        (vec![host(json!(0))], 7),
        (vec![host(json!(65536))], 7),
        (vec![host(json!(-1))], 7),
        (vec![json!({ "hostPort": 80, "containerPort": 0, "protocol": "tcp" })], 7),
        (vec![mapping(80, 80, "icmp")], 7),
        (vec![mapping(80, 80, "tcp"), mapping(80, 81, "tcp")], 7),
        (vec![at("192.0.2.300")], 7),
        (vec![at("ff02::1")], 7),
    ];
    for (at, (mappings, expected)) in cases.iter().enumerate() {
        let (code, text) = stage.refused(&stage.mapped(mappings), &format!("bad{at}"));
        assert_eq!(code, *expected, "{mappings:?}: {text}");
        assert_eq!(stage.node.inventory().unwrap().since(&before), Vec::<String>::new(), "{mappings:?}");
    }
}

#[test]
fn a_mapping_of_a_family_that_the_container_has_no_address_of_is_skipped() {
    let stage = Stage::new();
    let mut other = mapping(8081, 7000, "tcp");
    other["hostIP"] = NODE[1].into();
    let wanted = json!({ "portMappings": [mapping(8080, 7000, "tcp"), other] });
    let network = stage.node.network("old", "cni4", &["10.79.0.0/24"]).with("runtimeConfig", wanted);
    let sandbox = Sandbox::start(&stage.lab, &stage.node, &network, "one").unwrap();
    let told = stage.node.agent().ask("mappings").unwrap();
    let ports: Vec<_> = told.as_array().unwrap().iter().map(|mapping| &mapping["host_port"]).collect();
    assert_eq!(ports, [8080], "{told}");
    let _echo = sandbox.echo(sandbox.addresses()[0], 7000).unwrap();
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(5, 100).unwrap();
    for (client, name) in [(&stage.outside, NODE[1]), (stage.node.namespace(), "::1")] {
        let to = (address(name), 8080).into();
        let refused = client.enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(10))).unwrap();
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused, "{name}");
    }
    sandbox.delete(&stage.node, &network).unwrap();
}

fn text_id(mappings: &[Value]) -> String {
    let parts = mappings
        .iter()
        .map(|mapping| mapping["hostPort"].to_string() + &mapping["hostIP"].to_string().len().to_string());
    parts.collect::<Vec<_>>().join("-")
}
