//! A host outside a node: behind its uplink.

use std::net::Ipv4Addr;

use anyhow::Result;
use shunt_lab::{Namespace, Node};

/// The node's address on its uplink, and the host's outside.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// A pair of Ethernet ends between a node and a host outside, with addresses.
pub(crate) fn join(node: &Node, outside: &Namespace) -> Result<()> {
    node.namespace().pair("up0", outside, "eth0")?;
    for (namespace, ifname, address) in [(node.namespace(), "up0", NODE), (outside, "eth0", OUTSIDE)] {
        namespace.command("ip", &["address", "add", &format!("{address}/24"), "dev", ifname])?;
    }
    Ok(())
}
