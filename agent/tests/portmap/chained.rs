//! `portmap` in a chain behind the plugin that makes the interface, as podman and containerd write it.

use serde_json::{Value, json};
use shunt_lab::{Network, Protocol, Sandbox};

use crate::stage::{NODE, Stage, mapping};

fn chain(stage: &Stage, mappings: &[Value]) -> Network {
    stage.network.clone().then(json!({
        "type": "shunt-portmap",
        "snat": true,
        "agentSocket": stage.node.agent().socket(),
        "runtimeConfig": { "portMappings": mappings },
    }))
}

#[test]
fn a_chained_portmap_gives_its_port_and_takes_it_away() {
    let mut stage = Stage::new();
    let network = chain(&stage, &[mapping(8080, 7000, "tcp")]);
    let sandbox = Sandbox::start(&stage.lab, &stage.node, &network, "one").unwrap();
    stage.sandboxes.push(sandbox);
    stage.node.settle().unwrap();
    let _echo = stage.echo(0, 7000);
    for node in NODE {
        stage.open(&stage.outside, Protocol::Tcp, node, 8080).chat(20, 1000).unwrap();
    }
    let sandbox = &stage.sandboxes[0];
    network.check(stage.node.namespace(), sandbox.container(), &sandbox.attachment().result).unwrap();
    let (code, text) = stage.refused(&chain(&stage, &[mapping(8080, 80, "tcp")]), "two");
    assert_eq!(code, 102, "{text}");
    assert_eq!(stage.node.agent().status().unwrap().attachments, 1, "the refused one's interface is gone");
    sandbox.delete(&stage.node, &network).unwrap();
    assert_eq!(stage.wires(), Vec::<String>::new());
}

#[test]
fn conditions_of_another_packet_filter_are_refused() {
    let stage = Stage::new();
    let network = stage.network.clone().then(json!({
        "type": "shunt-portmap",
        "agentSocket": stage.node.agent().socket(),
        "conditionsV4": ["-s", "10.0.0.0/8"],
        "runtimeConfig": { "portMappings": [mapping(8080, 80, "tcp")] },
    }));
    let (code, text) = stage.refused(&network, "one");
    assert!(code == 100 && text.contains("conditionsV4"), "{code} {text}");
}
