//! Names of reference plugins that shunt has taken: what the kept ones made before, and what they make since where the programs cannot.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use shunt_lab::{Container, Network, Sandbox, cni::Refusal};

use crate::bandwidth::{BURST, RATE};
use crate::drop_in::{DropIn, container_rules, host_port, portmap};
use crate::portmap::HOST_PORT;
use crate::stage::{PORT, Stage};

fn bandwidth(stage: &Stage) -> Value {
    json!({ "type": "bandwidth", "agentSocket": stage.node.agent().socket(), "ingressRate": RATE, "ingressBurst": BURST,
        "egressRate": RATE, "egressBurst": BURST })
}

/// The devices and queues by which the reference `bandwidth` limits.
fn ifb_devices(stage: &Stage) -> usize {
    stage
        .node
        .namespace()
        .command("ip", &["-oneline", "link", "show", "type", "ifb"])
        .unwrap()
        .lines()
        .count()
}

fn is_reached(stage: &Stage) -> bool {
    let connect = || TcpStream::connect_timeout(&host_port(HOST_PORT), Duration::from_secs(1));
    stage.outside.enter(connect).unwrap().is_ok()
}

#[test]
fn what_the_reference_plugins_made_goes_with_the_container_that_shunt_deletes() {
    let Some(stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage);
    let plain = drop_in.network(&stage);
    let network = plain.clone().then(portmap(&stage, HOST_PORT, PORT)).then(bandwidth(&stage));
    let old = stage.start(&network, "old");
    stage.assert_served(&stage.outside, &old, host_port(HOST_PORT));
    assert!(!container_rules(&stage).is_empty());
    assert_eq!(ifb_devices(&stage), 1);
    let address = old.addresses();

    let drop_in = drop_in.install();
    stage.remove(&network, &old);
    assert_eq!(container_rules(&stage), Vec::<String>::new());
    assert_eq!(ifb_devices(&stage), 0);
    // Whoever gets the address next, gets no packet that is not for it.
    let ipam = json!({ "type": "static", "addresses": [{ "address": format!("{}/24", address[0]) }] });
    let next = stage.start(&plain.with("ipam", ipam), "next");
    assert_eq!(next.addresses(), address);
    let _echo = crate::stage::listen(&next);
    assert!(!is_reached(&stage), "the host port was the other container's");
    drop(drop_in);
}

/// A network of `ptp`, whose ports are on no bridge.
fn routed(stage: &Stage, drop_in: &DropIn) -> Network {
    let ipam = json!({ "type": "host-local", "dataDir": stage.node.leases(), "ranges": [[{ "subnet": "10.78.0.0/24" }]],
        "routes": [{ "dst": "0.0.0.0/0" }] });
    Network::new("routed", &drop_in.bin_dir, json!({ "type": "ptp", "ipMasq": true, "ipam": ipam }))
}

#[test]
fn host_ports_and_limits_behind_ptp_are_left_to_the_kept_plugins() {
    let Some(stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install();
    let network = routed(&stage, &drop_in).then(portmap(&stage, HOST_PORT, PORT)).then(bandwidth(&stage));
    let server = stage.start(&network, "server");
    stage.assert_served(&stage.outside, &server, host_port(HOST_PORT));
    assert_eq!(ifb_devices(&stage), 1);
    assert_eq!(stage.node.agent().status().unwrap().attachments, 0);
    stage.remove(&network, &server);
    assert_eq!(container_rules(&stage), Vec::<String>::new());
    assert_eq!(ifb_devices(&stage), 0);
    assert!(!is_reached(&stage));
}

#[test]
fn host_ports_that_nobody_can_give_fail_the_add_which_names_key_and_cure() {
    let Some(stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install();
    for (name, key, plugin) in [
        ("portmap", "portMappings", portmap(&stage, HOST_PORT, PORT)),
        ("bandwidth", "bandwidth", bandwidth(&stage)),
    ] {
        drop_in.lose(name);
        let network = routed(&stage, &drop_in).then(plugin);
        let container = Container::create(&stage.lab, name).unwrap();
        let error = network.add(stage.node.namespace(), &container).unwrap_err();
        let refusal = error.downcast::<Refusal>().unwrap();
        assert_eq!(refusal.code, 100, "{refusal}");
        for word in [key, &format!("{name}.orig")] {
            assert!(refusal.message.contains(word), "{word} in {refusal}");
        }
    }
    assert_eq!(container_rules(&stage), Vec::<String>::new());
}

#[test]
fn the_loopback_before_shunt_gives_it_no_address() {
    let Some(stage) = Stage::set() else { return };
    let mut second = stage.shunt_second();
    let ipam = json!({ "type": "shunt-ipam", "dataDir": stage.node.leases(), "ranges": [[{ "subnet": "10.77.0.0/24" }]] });
    second["bridge"] = json!(crate::stage::BRIDGE);
    second["isDefaultGateway"] = json!(true);
    second["ipam"] = ipam;
    let network = Network::new("pods", stage.node.plugins(), json!({ "type": "loopback" })).then(second);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let own = |sandbox: &Sandbox| sandbox.attachment().ipv4().unwrap();
    assert!(!own(&one).is_loopback() && !own(&two).is_loopback());
    let result = &one.attachment().result;
    assert!(result["ips"].as_array().unwrap().iter().any(|ip| ip["address"] == "127.0.0.1/8"), "{result}");
    stage.assert_talk(&one, &two);
    stage.assert_fast(&one, &two);
    stage.remove(&network, &one);
    stage.remove(&network, &two);
    assert!(!stage.node.inventory().unwrap().has("lease pods/127"));
}

#[test]
fn host_ports_with_conditions_that_only_rules_can_hold_are_left_to_the_kept_plugin() {
    let Some(stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install();
    let conditioned = |words: &[&str]| {
        let mut plugin = portmap(&stage, HOST_PORT, PORT);
        plugin["conditionsV4"] = json!(words);
        drop_in.network(&stage).then(plugin)
    };
    let cases: [(&str, &[&str], bool); 5] = [
        ("not-from-another", &["!", "-s", "198.51.100.3"], true),
        ("from", &["-s", "198.51.100.0/24"], true),
        ("not-from", &["!", "-s", "198.51.100.2"], false),
        ("not-to", &["!", "-d", "198.51.100.1"], false),
        ("to-subnet", &["-d", "198.51.100.0/24"], true),
    ];
    for (id, words, is_let_in) in cases {
        let network = conditioned(words);
        let server = stage.start(&network, id);
        if is_let_in {
            stage.assert_served(&stage.outside, &server, host_port(HOST_PORT));
        } else {
            let _echo = crate::stage::listen(&server);
            assert!(!is_reached(&stage), "{words:?}");
        }
        assert_eq!(stage.node.agent().status().unwrap().attachments, 1, "the bridge's port is shunt's");
        assert!(!container_rules(&stage).is_empty(), "{words:?}");
        stage.remove(&network, &server);
        assert_eq!(container_rules(&stage), Vec::<String>::new(), "{words:?}");
        assert!(!is_reached(&stage), "{words:?}");
    }
    drop_in.lose("portmap");
    let container = Container::create(&stage.lab, "nobody").unwrap();
    let error = conditioned(cases[1].1).add(stage.node.namespace(), &container).unwrap_err();
    let refusal = error.downcast::<Refusal>().unwrap();
    assert_eq!(refusal.code, 7, "{refusal}");
    for word in ["conditionsV4", "-s 198.51.100.0/24", "portmap.orig"] {
        assert!(refusal.message.contains(word), "{word} in {refusal}");
    }
}
