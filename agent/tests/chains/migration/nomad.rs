//! From Nomad's bridge: what its client makes at its start, and the list that it has for groups with `mode = "bridge"`.

use shunt_lab::Network;

use super::{Migration, Ports, documented, network};
use crate::drop_in::DropIn;
use crate::stage::{PORT, Stage};

/// Nomad's chain for administrators, and the subnet that the client lets in there.
const ADMIN: &str = "NOMAD-ADMIN";
const SUBNET: &str = "172.26.64.0/20";

/// A node that forwards nothing else, as one that had Docker.
fn chain(stage: &Stage, drop_in: &DropIn, ports: Ports<'_>) -> Network {
    let node = stage.node.namespace();
    if node.command("iptables", &["-n", "-L", ADMIN]).is_err() {
        node.command("iptables", &["-N", ADMIN]).unwrap();
        node.command("iptables", &["-A", ADMIN, "-o", "nomad", "-d", SUBNET, "-j", "ACCEPT"]).unwrap();
        node.command("iptables", &["-P", "FORWARD", "DROP"]).unwrap();
    }
    network(documented("nomad"), stage, drop_in, ports)
}

#[test]
fn allocations_of_nomads_bridge_live_on_under_shunt_and_go_back() {
    let Some(migration) = Migration::begin(&chain) else { return };
    let first = migration.network(&[(8070, PORT)]);
    migration.goes_there_and_back(&first, |stage, old| {
        assert_eq!(stage.port(&old.client).network, "nomad");
    });
}
