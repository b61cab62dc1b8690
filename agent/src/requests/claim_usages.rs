//! What attachments have of claims, for the claims' own status.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_agent_api::{AttachmentKey, BridgePort};

use crate::claims::Claim;
use crate::resources::Node;
use crate::resources::claim::has_claim;

/// A claim in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimUsage {
    /// The claim, with what it has of the attachment's uplink alone.
    pub(crate) claim: Claim,
    /// The interface's name in the container.
    pub(crate) ifname: String,
    /// Its addresses, each with the length of its subnet's prefix as far as that is known.
    pub(crate) ips: Vec<String>,
    /// Its MAC address.
    pub(crate) mac: String,
}

impl Node {
    /// The claims that limit an attachment, or any.
    pub(crate) fn claim_usages(&self, key: Option<&AttachmentKey>) -> Vec<ClaimUsage> {
        let ports = self.registry.attachments().map(|attachment| &attachment.port);
        let ports = ports.filter(|port| key.is_none_or(|key| port.key == *key));
        let of = |port: &BridgePort| {
            let uplink = self.ledger.uplink_of(&port.key.network).unwrap_or_default();
            let claims = self.claims.iter().filter(|claim| has_claim(port, &claim.uid));
            claims.map(|claim| usage(claim, uplink, port)).collect::<Vec<_>>()
        };
        ports.flat_map(of).collect()
    }
}

/// What a port has of a claim: the claim's other uplinks are other interfaces'.
fn usage(claim: &Claim, uplink: &str, port: &BridgePort) -> ClaimUsage {
    let shares = claim.shares.iter().filter(|share| share.uplink == uplink).cloned().collect();
    ClaimUsage {
        claim: Claim { shares, ..claim.clone() },
        ifname: port.key.ifname.clone(),
        ips: port.ips.iter().map(|ip| with_prefix(*ip, port)).collect(),
        mac: port.mac.clone(),
    }
}

/// An address with its subnet's length, as the port's gateways have it; else alone.
fn with_prefix(ip: IpAddr, port: &BridgePort) -> String {
    let subnets = port.service.gateways.iter().filter_map(|gateway| gateway.parse::<IpNet>().ok());
    let length = subnets.filter(|subnet| subnet.contains(&ip)).map(|subnet| subnet.prefix_len()).next();
    format!("{ip}/{}", length.unwrap_or(if ip.is_ipv4() { 32 } else { 128 }))
}
