//! From the reference `bridge` with host-local, portmap, firewall and bandwidth behind it.

use serde_json::json;
use shunt_lab::Network;

use super::{Migration, Ports, documented, network};
use crate::bandwidth::{BURST, RATE, assert_limited};
use crate::drop_in::DropIn;
use crate::stage::Stage;

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
