//! Finds the flows that already take the kernel's path when programs are attached to ports in use.
//!
//! A flow keeps one path for life. First the ports treat every unknown flow as the kernel's ([`FlowAffinity::Learn`]); then conntrack's flows are
//! written to `KERNEL_FLOWS`, and only those stay with the kernel ([`FlowAffinity::Lookup`]). The ports keep looking up: a flow may have been recorded
//! between the dump of conntrack and the switch.

use std::collections::{HashMap, HashSet};

use shunt_dataplane::abi::End;
use shunt_dataplane::abi::translation::{OUTSIDE, TupleKey};
use shunt_dataplane::abi::{FlowKey, KernelFlow};
use shunt_dataplane::wire::address::Address;
use shunt_netlink::conntrack::{Tuple, tracked_connections};

use crate::datapath::FlowAffinity;
use crate::datapath::in_map;
use crate::kernel::KernelError;
use crate::resources::Node;
use crate::resources::clock::boot_time;

/// Protocols whose ports the programs give away.
const TCP: u8 = 6;
const UDP: u8 = 17;

impl Node {
    /// Makes the ports with these host ends learn the kernel's flows.
    pub(crate) fn learn(&mut self, unsure: &HashSet<u32>) {
        match self.learn_from_conntrack(unsure) {
            Ok(flows) => tracing::info!(ports = unsure.len(), flows, "learned the kernel's flows"),
            Err(error) => {
                tracing::warn!(%error, "cannot read the flows of conntrack");
                self.warnings
                    .push(format!("{} ports leave all unknown flows to the kernel: {error}", unsure.len()));
            }
        }
    }

    /// Returns how many flows are the kernel's.
    pub(crate) fn learn_from_conntrack(&mut self, unsure: &HashSet<u32>) -> Result<usize, KernelError> {
        let owners = self.owners();
        let noticed = boot_time();
        let mut asking = unsure.clone();
        let mut flows = HashSet::new();
        for connection in tracked_connections()? {
            self.claim(&connection.reply, noticed)?;
            for tuple in [connection.original, connection.reply] {
                for (bridge, ifindex) in ends(&tuple).into_iter().filter_map(|end| owners.get(&end)).flatten()
                {
                    asking.insert(*ifindex);
                    let ends = [tuple.source, tuple.destination]
                        .map(|end| End { address: end.ip().into(), port: end.port().into() });
                    flows.insert(FlowKey::of(*bridge, tuple.protocol, ends[0], ends[1]));
                }
            }
        }
        for flow in &flows {
            let noted = self.datapath.maps.kernel_flows.insert(flow, KernelFlow { noticed }, 0);
            noted.map_err(in_map("KERNEL_FLOWS"))?;
        }
        for ifindex in asking {
            self.datapath.write_affinity(ifindex, FlowAffinity::Lookup)?;
        }
        Ok(flows.len())
    }

    /// A connection of the node's own, or one that the kernel masquerades, keeps its tuple outside.
    fn claim(&mut self, reply: &Tuple, noticed: u64) -> Result<(), KernelError> {
        let has_ports = matches!(reply.protocol, TCP | UDP);
        if !has_ports || !self.is_own_address(reply.destination.ip()) {
            return Ok(());
        }
        let answer = TupleKey {
            domain: OUTSIDE,
            source_port: reply.source.port().into(),
            destination_port: reply.destination.port().into(),
            source: reply.source.ip().into(),
            destination: reply.destination.ip().into(),
            protocol: reply.protocol,
            pad: [0; 3],
        };
        let claimed = self.datapath.maps.claims.insert(answer, KernelFlow { noticed }, 0);
        Ok(claimed.map_err(in_map("CLAIMS"))?)
    }

    /// The bridges and host ends that have each address.
    fn owners(&self) -> HashMap<Address, Vec<(u32, u32)>> {
        let mut owners: HashMap<_, Vec<_>> = HashMap::new();
        for attachment in self.registry.attachments() {
            for ip in &attachment.port.ips {
                let place = (attachment.port.bridge.index, attachment.port.host.index);
                owners.entry(Address::from(*ip)).or_default().push(place);
            }
        }
        owners
    }
}

fn ends(tuple: &Tuple) -> [Address; 2] {
    [tuple.source, tuple.destination].map(|end| Address::from(end.ip()))
}
