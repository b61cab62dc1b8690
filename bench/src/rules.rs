//! An operator's rules for what a node forwards. Bogons are dropped before they are tracked. What is established passes, then what
//! host ports have led on and what containers open, unless it comes from a refused source.

use anyhow::Result;
use shunt_lab::Node;

/// The agent's file by which such rules are heeded, for host ports too.
pub(crate) const HEEDED: &str = "filters = 'heed'\nfilter_host_ports = true";

/// No address of its sets is in use here.
const RULES: &str = "table inet engine { \
    set bogons { type ipv4_addr; flags interval; elements = { 0.0.0.0/8, 198.18.0.0/15, 240.0.0.0/4 }; }; \
    set refused { type ipv4_addr; flags interval; elements = { 198.51.100.0/24, 203.0.113.0/24 }; }; \
    chain early { type filter hook prerouting priority -300; policy accept; ip saddr @bogons drop; }; \
    chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept; \
    ip saddr @refused drop; ct status dnat accept; iifname cni0 accept; }; }";

/// Loads them into the node.
pub(crate) fn load(node: &Node) -> Result<()> {
    node.namespace().command("nft", &[RULES]).map(drop)
}
