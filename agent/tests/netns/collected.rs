//! GC with everything real: what the runtime does not list goes, of one network only, and with all that belongs to it.

use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Network, Protocol, Sandbox, patience};

use crate::stage::Stage;

/// The agent takes pins away after the kernel's own news of a link that is gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// The network with a host port and a limit, so that an attachment has everything that one can have.
fn complete(network: &Network, port: u16) -> Network {
    let mappings = json!({ "portMappings": [{ "hostPort": port, "containerPort": 80, "protocol": "tcp" }] });
    let limits = [
        ("egressRate", 8_000_000),
        ("egressBurst", 800_000),
        ("ingressRate", 8_000_000),
        ("ingressBurst", 800_000),
    ];
    limits.into_iter().fold(network.clone().with("runtimeConfig", mappings), |network, (key, value)| {
        network.with(key, json!(value))
    })
}

/// `network/container` of every attachment that the agent has.
fn attached(stage: &Stage) -> Vec<String> {
    let ports = stage.node.agent().ports().unwrap();
    let mut keys: Vec<_> = ports.iter().map(|port| format!("{}/{}", port.network, port.container)).collect();
    keys.sort();
    keys
}

#[test]
fn gc_leaves_exactly_what_is_listed_and_other_networks_untouched() {
    let mut stage = Stage::empty();
    // Another network on the same agent and the same bridge, with a container of the same name.
    let other =
        stage.node.network("others", "cni0", &["10.77.0.128/25"]).with("isDefaultGateway", json!(false));
    let mut port = 8000;
    let mut add = |stage: &mut Stage, network: &Network, id: &str, container: &str| {
        port += 1;
        let container = shunt_lab::Container::create(&stage.lab, &format!("{id}-{container}")).unwrap();
        let added = complete(network, port).add(stage.node.namespace(), &container).unwrap();
        (container, added)
    };
    let pods = stage.network.clone();
    let kept = add(&mut stage, &pods, "kept", "pods");
    let of_other = add(&mut stage, &other, "stale", "others");
    let before = stage.node.inventory().unwrap();
    let ports = attached(&stage);
    let stale: Vec<_> = (0..5).map(|at| add(&mut stage, &pods, "stale", &at.to_string())).collect();
    assert_eq!(attached(&stage).len(), 7);

    for _ in 0..2 {
        pods.collect(stage.node.namespace(), &[&kept.0], &kept.0).unwrap();
    }
    let begun = Instant::now();
    while stage.node.inventory().unwrap() != before && begun.elapsed() < patience(PATIENCE) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let now = stage.node.inventory().unwrap();
    assert_eq!((now.since(&before), before.since(&now)), (Vec::new(), Vec::new()));
    assert_eq!(attached(&stage), ports);
    assert_eq!(stage.node.agent().ask("mappings").unwrap().as_array().unwrap().len(), 2);
    for (container, _) in &stale {
        assert!(!container.namespace().command("ip", &["link"]).unwrap().contains("eth0"));
    }
    // Both that stay serve, and each is as its result says.
    for (network, (container, added)) in [(&pods, &kept), (&other, &of_other)] {
        network.check(stage.node.namespace(), container, &added.result).unwrap();
    }
    let again = Sandbox::start(&stage.lab, &stage.node, &pods, "again").unwrap();
    let echo = shunt_lab::Echo::listen(kept.0.namespace(), kept.1.addresses()[0], 7000).unwrap();
    again.talk_to(Protocol::Tcp, &echo).unwrap().chat(20, 1000).unwrap();
}
