//! Which ports look up whether flows are the kernel's, because a container before had some.

use shunt_dataplane::abi::{AFFINITY_FAST, FlowKey, MAX_KERNEL_FLOWS};
use shunt_dataplane::wire::address::Address;

use crate::datapath::{DatapathError, FlowAffinity, encode, in_map};
use crate::registry::Attachment;
use crate::resources::Node;

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
            self.former.give_up();
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
