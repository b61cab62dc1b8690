//! From flannel as k3s sets it up: its plugin, `portmap` and `bandwidth`.
//!
//! In the place of flannel's plugin is a script that does what its documentation says: it has `bridge` make the interface, by the
//! subnet of flannel's daemon, keeps what it told `bridge` for the DEL, and reads nothing else then.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use shunt_lab::Network;

use super::{Migration, Ports, documented, network};
use crate::drop_in::{DropIn, OTHER};
use crate::stage::{PORT, Stage};

/// The cluster's pods, this node's of them, and the MTU that the daemon's file has for a tunnel.
const CLUSTER: &str = "10.42.0.0/16";
const SUBNET: &str = "10.42.1.0/24";
const MTU: u16 = 1450;

/// What the plugin tells `bridge`, by the list and a daemon that masquerades itself.
fn delegate(stage: &Stage) -> Value {
    let mut told = documented("cbr0")["plugins"][0]["delegate"].clone();
    let ipam = json!({ "type": "host-local", "dataDir": stage.node.leases(), "ranges": [[{ "subnet": SUBNET }]],
        "routes": [{ "dst": CLUSTER }] });
    let own = json!({ "cniVersion": "1.0.0", "name": "cbr0", "type": "bridge", "isGateway": true, "ipMasq": false,
        "mtu": MTU, "agentSocket": stage.node.agent().socket(), "ipam": ipam });
    told.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    told
}

fn script(stage: &Stage) -> String {
    let kept = stage.lab.root().join("flannel");
    fs::create_dir_all(&kept).unwrap();
    let (kept, delegate) = (kept.display(), delegate(stage));
    format!(
        r#"#!/bin/sh
kept={kept}/$CNI_CONTAINERID
cat > /dev/null
case $CNI_COMMAND in
ADD)
    echo '{delegate}' > "$kept"
    exec "$CNI_PATH/bridge" < "$kept" ;;
DEL)
    [ -e "$kept" ] || exit 0
    "$CNI_PATH/bridge" < "$kept" && rm "$kept" ;;
esac
"#
    )
}

/// The rules of flannel's daemon.
const RULES: [&[&str]; 4] = [
    &["-t", "nat", "-A", "POSTROUTING", "-s", CLUSTER, "-d", CLUSTER, "-j", "RETURN"],
    &["-t", "nat", "-A", "POSTROUTING", "-s", CLUSTER, "!", "-d", "224.0.0.0/4", "-j", "MASQUERADE"],
    &["-A", "FORWARD", "-s", CLUSTER, "-j", "ACCEPT"],
    &["-A", "FORWARD", "-d", CLUSTER, "-j", "ACCEPT"],
];

/// The list that k3s writes.
fn chain(stage: &Stage, drop_in: &DropIn, ports: Ports<'_>) -> Network {
    let plugin = drop_in.bin_dir.join(OTHER);
    if !plugin.exists() {
        fs::write(&plugin, script(stage)).unwrap();
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
        for rule in RULES {
            stage.node.namespace().command("iptables", rule).unwrap();
        }
    }
    network(documented("cbr0"), stage, drop_in, ports)
}

#[test]
fn pods_of_flannels_bridge_live_on_under_shunt_and_go_back() {
    let Some(migration) = Migration::begin(&chain) else { return };
    let first = migration.network(&[(8070, PORT)]);
    migration.goes_there_and_back(&first, |stage, old| {
        assert_eq!(stage.port(&old.client).network, "cbr0");
    });
}
