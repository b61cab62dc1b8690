//! The addresses of containers that are gone and had flows of the kernel's. `KERNEL_FLOWS` may hold these still, and the next container
//! with such an address may have the same flow again: both of its ends have to look it up, or conntrack sees half of it.

use std::collections::HashSet;

use shunt_dataplane::abi::{AFFINITY_FAST, FlowKey, MAX_KERNEL_FLOWS};
use shunt_dataplane::wire::address::Address;

use crate::datapath::{DatapathError, FlowAffinity, encode, in_map};
use crate::registry::Attachment;
use crate::resources::Node;

/// So many are told apart; with more, every new port looks its flows up.
const MOST: usize = 1 << 16;

/// Addresses, each with its bridge.
#[derive(Debug, Default)]
pub(crate) struct Former {
    addresses: HashSet<(u32, Address)>,
    is_full: bool,
}

impl Former {
    fn note(&mut self, of: impl IntoIterator<Item = (u32, Address)>) {
        for address in of {
            if self.addresses.len() >= MOST && !self.addresses.contains(&address) {
                self.is_full = true;
                return;
            }
            self.addresses.insert(address);
        }
    }

    fn has(&self, of: impl IntoIterator<Item = (u32, Address)>) -> bool {
        self.is_full || of.into_iter().any(|address| self.addresses.contains(&address))
    }
}

impl Node {
    /// Notes the addresses of a port that goes, if it has looked up flows. What cannot be read counts as if it had.
    pub(crate) fn note_former(&mut self, attachment: &Attachment) {
        let entry = self.datapath.port(attachment.port.host.index);
        if !matches!(entry, Ok(Some(entry)) if entry.affinity == AFFINITY_FAST) {
            self.former.note(addresses(attachment));
        }
    }

    /// Notes the addresses of all flows that an earlier agent's programs have left. Where they cannot be read, everybody is one.
    pub(crate) fn note_all_former(&mut self) {
        if let Err(error) = self.read_former() {
            tracing::warn!(%error, "all new ports look their flows up");
            self.former.is_full = true;
        }
    }

    fn read_former(&mut self) -> Result<(), DatapathError> {
        // Programs that change the map may lead a walk back to its beginning.
        for flow in self.datapath.maps.kernel_flows.keys().take(2 * MAX_KERNEL_FLOWS as usize) {
            let FlowKey { bridge, low, high, .. } = flow.map_err(in_map("KERNEL_FLOWS"))?;
            self.former.note([(bridge, low), (bridge, high)]);
        }
        Ok(())
    }

    /// Has a port without flows of the kernel's look its flows up from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn require_flow_lookup(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let ifindex = attachment.port.host.index;
        match self.datapath.port(ifindex)? {
            Some(entry) if entry.affinity == AFFINITY_FAST => {
                self.datapath.write_affinity(ifindex, FlowAffinity::Lookup)
            }
            _ => Ok(()),
        }
    }

    /// Whether flows with a new port's addresses may be the kernel's.
    pub(crate) fn may_have_kernel_flows(&self, attachment: &Attachment) -> bool {
        self.former.has(addresses(attachment))
    }
}

fn addresses(attachment: &Attachment) -> Vec<(u32, Address)> {
    let bridge = attachment.port.bridge.index;
    encode::addresses(attachment).map(|ip| (bridge, Address::from(*ip))).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> (u32, Address) {
        (1, std::net::IpAddr::V4(Ipv4Addr::from(number)).into())
    }

    #[test]
    fn an_address_is_one_of_its_bridge() {
        let mut former = Former::default();
        former.note([address(7)]);
        assert!(former.has([address(6), address(7)]));
        assert!(!former.has([address(6)]));
        assert!(!former.has([(2, address(7).1)]));
    }

    #[test]
    fn when_there_are_too_many_everybody_is_one() {
        let mut former = Former::default();
        former.note((0..MOST as u32).map(address));
        former.note([address(7)]);
        assert!(!former.has([address(u32::MAX)]));
        former.note([address(1 << 20)]);
        assert!(former.has([address(u32::MAX)]));
        assert_eq!(former.addresses.len(), MOST);
    }
}
