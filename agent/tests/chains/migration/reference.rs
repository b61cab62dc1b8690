//! From the reference `bridge` with host-local, portmap, firewall and bandwidth behind it.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use shunt_lab::Network;

use super::{Living, Migration, NEW_HOST_PORT, Ports, documented, network};
use crate::bandwidth::{BURST, RATE, assert_limited};
use crate::drop_in::{DropIn, host_port};
use crate::stage::{PORT, Stage, UPLINK, listen};

fn chain(stage: &Stage, drop_in: &DropIn, ports: Ports<'_>) -> Network {
    network(documented("pods"), stage, drop_in, ports)
}

#[test]
fn containers_of_the_reference_plugins_live_on_under_shunt_and_go_back() {
    let Some(migration) = Migration::begin(&chain) else { return };
    let mut list = documented("pods");
    let rates =
        json!({ "ingressRate": RATE, "ingressBurst": BURST, "egressRate": RATE, "egressBurst": BURST });
    list["plugins"][3]["runtimeConfig"] = json!({ "bandwidth": rates });
    let limited = network(list, &migration.stage, &migration.drop_in, &[]);
    migration.goes_there_and_back(&limited, |_, old| {
        // Limits stay queues of the plugin that made them, and what they limit goes by the kernel.
        assert_limited(&old.first, &old.client);
        assert_limited(&old.client, &old.first);
    });
}

/// Whether the host outside reaches a port of the node.
fn is_reached(stage: &Stage, port: u16) -> bool {
    let connect = || TcpStream::connect_timeout(&host_port(port), Duration::from_secs(1));
    stage.outside.enter(connect).unwrap().is_ok()
}

#[test]
fn rules_about_host_ports_are_heeded_and_portmap_may_have_its_name_back() {
    let Some(mut migration) = Migration::begin(&chain) else { return };
    let old = migration.old(&migration.network(&[]));
    let mut living =
        Living::begin(&migration.stage, &old.client, &old.server, host_port(super::LIVING_HOST_PORT));
    migration.change(&mut living);
    let stage = &migration.stage;
    let rule = ["FORWARD", "-s", UPLINK[1], "-p", "tcp", "--dport", "7000", "-j", "DROP"];
    stage.node.namespace().command("iptables", &[&["-I"], &rule[..]].concat()).unwrap();
    let by_programs = migration.add("by-programs", &migration.network(&[(8071, PORT)]));
    let _echo = listen(&by_programs);
    assert!(!is_reached(stage, 8071), "rules of forwarded packets are heeded");

    let name = migration.drop_in.bin_dir.join("portmap");
    fs::rename(name.with_extension("orig"), &name).unwrap();
    let network = migration.network(&[(NEW_HOST_PORT, PORT)]);
    let new = migration.add("new", &network);
    let _served = listen(&new);
    assert!(!is_reached(stage, NEW_HOST_PORT), "the rule is heeded");
    stage.node.namespace().command("iptables", &[&["-D"], &rule[..]].concat()).unwrap();
    assert!(is_reached(stage, NEW_HOST_PORT));
    living.go_on("with both kinds of host ports");
    migration.delete(&new, &network);
    migration.delete(&by_programs, &migration.network(&[(8071, PORT)]));
    assert!(!is_reached(stage, NEW_HOST_PORT) && !is_reached(stage, 8071));
}
