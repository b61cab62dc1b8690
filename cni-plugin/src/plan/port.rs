//! A port as the agent is told of it.

use shunt_agent_api::{BridgePort, Interface};
use shunt_netlink::link::Link;

use super::Plan;

/// The port as the agent is told of it: `host` is its host's end, and `bridge` what that is joined to.
pub(crate) fn port_of(plan: &Plan, bridge: Interface, host: &Link) -> BridgePort {
    BridgePort {
        key: plan.key.clone(),
        bridge,
        host: interface(host),
        mac: plan.mac.to_string(),
        ips: plan.result.ips.iter().map(|ip| ip.address.addr()).collect(),
        mtu: host.mtu,
        netns: Some(plan.netns.clone()),
        peer_up: plan.up,
        masquerade: plan.masquerade.clone(),
        unmasqueraded: plan.unmasqueraded.clone(),
        restrictions: plan.restrictions.clone(),
        mappings: plan.mappings.clone(),
        bandwidth: plan.limits.clone(),
        service: plan.service.clone(),
        lease_dir: plan.lease_dir.clone(),
        vlan: None,
        pod: Some(plan.pod.clone()),
    }
}

/// A link as the agent is told of it.
pub(crate) fn interface(link: &Link) -> Interface {
    Interface { name: link.name.clone(), index: link.index }
}
