//! What `setup` answers: netavark's status block, which `podman inspect` shows.

use serde_json::{Value, json};

use crate::result::AddResult;

/// Of the container's interface in an ADD's result.
pub(super) fn of(made: &AddResult, ifname: &str) -> Value {
    let own =
        made.interfaces.iter().find(|interface| interface.name == ifname && !interface.sandbox.is_empty());
    let mac = own.map(|interface| interface.mac.as_str()).unwrap_or_default();
    let subnets: Vec<_> = made
        .ips_of(ifname)
        .map(|ip| json!({ "ipnet": ip.address.to_string(), "gateway": ip.gateway }))
        .collect();
    json!({
        "dns_search_domains": [],
        "dns_server_ips": [],
        "interfaces": { ifname: { "mac_address": mac, "subnets": subnets } },
    })
}
