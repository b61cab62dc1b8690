//! What is wrong is refused with the right code, and nothing of it stays.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use shunt_lab::cni::{Call, Refusal};
use shunt_lab::{Container, Network, Sandbox};

use crate::stage::Stage;

/// Runs ADD with `config` as it is, and gives the refusal that it must be.
fn refused(stage: &Stage, container: &Container, netns: &Path, config: &[u8]) -> Refusal {
    let call = Call {
        verb: "ADD",
        container: container.id(),
        netns,
        ifname: "eth0",
        path: stage.node.plugins(),
        plugin: "shunt",
        config,
    };
    let done = call.run(stage.node.namespace()).unwrap();
    done.outcome.expect_err("this ADD is to be refused")
}

/// A good configuration with `changes` made to it.
fn config(stage: &Stage, changes: &Value) -> Vec<u8> {
    let mut config = json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "type": "shunt",
        "bridge": "cni0",
        "isGateway": true,
        "agentSocket": stage.node.agent().socket(),
        "ipam": { "type": "shunt-ipam", "dataDir": stage.node.leases(), "ranges": [[{ "subnet": "10.77.0.0/24" }]] },
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config.to_string().into_bytes()
}

/// The stage and a container that nothing was added to.
fn stage_and_container() -> (Stage, Container) {
    let stage = Stage::empty();
    let container = Container::create(&stage.lab, "victim").unwrap();
    (stage, container)
}

#[test]
fn a_broken_configuration_is_a_decoding_error() {
    let (stage, container) = stage_and_container();
    let refusal = refused(&stage, &container, container.namespace().path(), b"{\"cniVersion\": \"1.0.0\", ");
    assert_eq!(refusal.code, 6, "{refusal}");
    assert_eq!(stage.left(), Vec::<String>::new());
}

#[test]
fn configurations_that_make_no_sense_are_named_as_such() {
    let (stage, container) = stage_and_container();
    for (changes, codes, mentions) in [
        (json!({ "mtu": "large" }), [6, 7], "mtu"),
        (json!({ "mtu": -1 }), [6, 7], "mtu"),
        (json!({ "hairpinMode": true, "promiscMode": true }), [7, 7], "promiscMode"),
        (json!({ "vlan": 5000 }), [7, 7], "vlan"),
        (json!({ "bridge": "a-name-that-is-too-long" }), [7, 7], "bridge"),
        (json!({ "name": "" }), [7, 7], "name"),
        (json!({ "cniVersion": "9.0.0" }), [1, 1], "9.0.0"),
        (json!({ "ipam": { "type": "shunt-ipam" } }), [7, 7], "range"),
    ] {
        let refusal = refused(&stage, &container, container.namespace().path(), &config(&stage, &changes));
        assert!(codes.contains(&refusal.code), "{changes}: {refusal}");
        let text = format!("{} {}", refusal.message, refusal.details);
        assert!(text.contains(mentions), "{changes}: {text:?} does not mention {mentions}");
        assert_eq!(stage.left(), Vec::<String>::new(), "after {changes}");
    }
}

#[test]
fn a_missing_namespace_is_refused() {
    let (stage, container) = stage_and_container();
    let nowhere = stage.lab.root().join("nowhere.netns");
    let refusal = refused(&stage, &container, &nowhere, &config(&stage, &json!({})));
    assert!([4, 8].contains(&refusal.code), "{refusal}");
    assert!(refusal.to_string().contains("nowhere.netns"), "{refusal}");
    assert_eq!(stage.left(), Vec::<String>::new());
}

#[test]
fn the_nodes_own_namespace_is_refused_before_anything_is_made() {
    let (stage, container) = stage_and_container();
    let own = stage.node.namespace().path();
    let refusal = refused(&stage, &container, own, &config(&stage, &json!({})));
    assert!([4, 8].contains(&refusal.code), "{refusal}");
    let made = stage.node.inventory().unwrap().since(&stage.empty);
    assert_eq!(made, Vec::<String>::new(), "not even the bridge");
}

#[test]
fn an_interface_name_that_is_taken_is_refused_and_the_old_one_stays() {
    let mut stage = Stage::empty();
    stage.add("one");
    let before = stage.node.inventory().unwrap();
    let netns = stage.sandboxes[0].namespace().path();
    let intruder = Container::create(&stage.lab, "intruder").unwrap();
    let refusal = refused(&stage, &intruder, netns, &config(&stage, &json!({})));
    assert!(refusal.to_string().contains("eth0"), "{refusal}");
    assert_eq!(stage.node.inventory().unwrap().since(&before), Vec::<String>::new());
    stage.add("two");
    stage.assert_talk(0, 1);
}

#[test]
fn an_agent_that_cannot_be_reached_is_try_again_later() {
    let (mut stage, container) = stage_and_container();
    stage.node.agent_mut().kill().unwrap();
    let refusal = refused(&stage, &container, container.namespace().path(), &config(&stage, &json!({})));
    assert_eq!(refusal.code, 11, "{refusal}");
    assert!(refusal.to_string().contains("agent.sock"), "{refusal}");
    let made = stage.node.inventory().unwrap().since(&stage.empty);
    assert_eq!(made, Vec::<String>::new(), "not even the bridge");
    assert!(container.namespace().command("ip", &["link", "show", "eth0"]).is_err());
}

#[test]
fn an_exhausted_range_is_an_error_that_names_it() {
    let mut stage = Stage::empty();
    // A /30 has one address beside the gateway's.
    stage.network = stage.node.network("pods", "cni0", &["10.77.0.0/30"]);
    stage.add("one");
    let before = stage.node.inventory().unwrap();
    let refusal = Sandbox::start(&stage.lab, &stage.node, &stage.network, "two").unwrap_err();
    assert!(format!("{refusal:#}").contains("10.77.0"), "{refusal:#}");
    assert_eq!(stage.node.inventory().unwrap().since(&before), Vec::<String>::new());
}

/// The addresses that are leased in the network of [`config`].
fn leased(stage: &Stage) -> Vec<IpAddr> {
    let Ok(entries) = std::fs::read_dir(stage.node.leases().join("pods")) else { return Vec::new() };
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).collect()
}

/// An address is looked for while the interface is made: whichever of the two fails, nothing is left of the other.
#[test]
fn of_an_address_and_an_interface_of_which_one_cannot_be_had_nothing_is_left() {
    let (stage, container) = stage_and_container();
    let netns = container.namespace().path();
    // A /30 has one address beside the gateway's, and somebody has it. There is no bridge yet.
    let taken = stage.node.leases().join("pods/10.77.0.2");
    std::fs::create_dir_all(taken.parent().unwrap()).unwrap();
    std::fs::write(&taken, "somebody\r\neth0").unwrap();
    let full = json!({ "type": "shunt-ipam", "dataDir": stage.node.leases(), "ranges": [[{ "subnet": "10.77.0.0/30" }]] });
    let refusal = refused(&stage, &container, netns, &config(&stage, &json!({ "ipam": full })));
    assert!(refusal.to_string().contains("10.77.0"), "{refusal}");
    // What somebody else has written is told whose it is by a second name.
    let made = stage.node.inventory().unwrap().since(&stage.empty);
    assert!(made.iter().all(|what| what.starts_with("lease ")), "not even the bridge: {made:?}");
    assert_eq!(leased(&stage), ["10.77.0.2".parse::<IpAddr>().unwrap()]);
    std::fs::remove_dir_all(stage.node.leases()).unwrap();

    // An address, and nothing that the interface could be a port of.
    stage
        .node
        .namespace()
        .command("ip", &["link", "add", "cni0", "type", "veth", "peer", "name", "other"])
        .unwrap();
    let refusal = refused(&stage, &container, netns, &config(&stage, &json!({})));
    assert!(refusal.to_string().contains("cni0"), "{refusal}");
    assert_eq!(leased(&stage), Vec::<IpAddr>::new());
    stage.node.namespace().command("ip", &["link", "del", "cni0"]).unwrap();

    // Both, and what is to be done with them makes no sense.
    let mappings = json!([{ "hostPort": 80, "containerPort": 80, "protocol": "icmp" }]);
    let senseless = json!({ "runtimeConfig": { "portMappings": mappings } });
    let refusal = refused(&stage, &container, netns, &config(&stage, &senseless));
    assert!(refusal.to_string().contains("icmp"), "{refusal}");
    assert_eq!(leased(&stage), Vec::<IpAddr>::new());
    assert_eq!(stage.left(), Vec::<String>::new());
    assert!(container.namespace().command("ip", &["link", "show", "eth0"]).is_err());
}

/// An IPAM that allocates (a file named after the container), then fails; DEL gives back.
const FAILING_IPAM: &str = r#"#!/bin/sh
cat > /dev/null
lease="@LEASES@/$CNI_CONTAINERID"
case "$CNI_COMMAND" in
ADD)
    mkdir -p "@LEASES@"
    touch "$lease"
    echo '{"cniVersion": "1.0.0", "code": 123, "msg": "the disk is on fire", "details": "really"}'
    exit 1 ;;
DEL) rm -f "$lease"; touch "@WITNESS@" ;;
esac
"#;

/// An IPAM that allocates what cannot be used: an address outside of all ranges, a route without a way.
const ABSURD_IPAM: &str = r#"#!/bin/sh
cat > /dev/null
lease="@LEASES@/$CNI_CONTAINERID"
case "$CNI_COMMAND" in
ADD)
    mkdir -p "@LEASES@"
    touch "$lease"
    echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.66.0.2/24", "gateway": "10.66.0.1"}],
           "routes": [{"dst": "192.0.2.0/24", "gw": "203.0.113.1"}]}' ;;
DEL) rm -f "$lease"; touch "@WITNESS@" ;;
esac
"#;

/// Adds a container with a shell script as its IPAM; gives the refusal, and whether DEL was asked for.
fn refused_with_ipam(stage: &Stage, container: &Container, script: &str) -> (Refusal, bool) {
    let witness = stage.lab.root().join("witness");
    let script = script
        .replace("@LEASES@", stage.node.leases().to_str().unwrap())
        .replace("@WITNESS@", witness.to_str().unwrap());
    let program = stage.node.plugins().join("script-ipam");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let network = Network::new(
        "pods",
        stage.node.plugins(),
        json!({
            "type": "shunt",
            "bridge": "cni0",
            "isGateway": true,
            "agentSocket": stage.node.agent().socket(),
            "ipam": { "type": "script-ipam" },
        }),
    );
    let error = network.add(stage.node.namespace(), container).unwrap_err();
    (error.downcast::<Refusal>().unwrap(), witness.exists())
}

#[test]
fn an_ipam_that_fails_after_allocating_is_undone_and_its_error_passed_on() {
    let (stage, container) = stage_and_container();
    let (refusal, undone) = refused_with_ipam(&stage, &container, FAILING_IPAM);
    assert_eq!(refusal.code, 123, "{refusal}");
    assert!(refusal.to_string().contains("the disk is on fire"), "{refusal}");
    assert!(undone, "the IPAM was not asked to DEL");
    assert_eq!(stage.left(), Vec::<String>::new());
    assert!(container.namespace().command("ip", &["link", "show", "eth0"]).is_err());
}

#[test]
fn an_ipam_whose_routes_cannot_be_set_is_undone() {
    let (stage, container) = stage_and_container();
    let (refusal, undone) = refused_with_ipam(&stage, &container, ABSURD_IPAM);
    assert!(refusal.code > 0, "{refusal}");
    assert!(undone, "the IPAM was not asked to DEL");
    assert_eq!(stage.left(), Vec::<String>::new());
    assert!(container.namespace().command("ip", &["link", "show", "eth0"]).is_err());
}
