//! Finds the flows that already take the kernel's path when programs are attached to ports in use.
//!
//! A flow keeps one path for life. First the ports treat every unknown flow as the kernel's ([`FlowAffinity::Learn`]); then conntrack's flows are
//! written to `KERNEL_FLOWS`, and only those stay with the kernel ([`FlowAffinity::Lookup`]). The ports keep looking up: a flow may have been recorded
//! between the dump of conntrack and the switch.

use std::collections::{HashMap, HashSet};

use shunt_dataplane::abi::translation::OUTSIDE;
use shunt_dataplane::abi::{FlowKey, KernelFlow, NO_SLOT};
use shunt_netlink::conntrack::{Tuple, tracked_connections};

use super::owners::Owners;
use crate::datapath::FlowAffinity;
use crate::datapath::encode::tuple_key;
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

    /// Returns how many flows are the kernel's. A container with more than its share of them is put apart.
    pub(crate) fn learn_from_conntrack(&mut self, unsure: &HashSet<u32>) -> Result<usize, KernelError> {
        let owners = Owners::of(&self.registry);
        let noticed = boot_time();
        // The programs may have counted before an agent said how many there may be.
        self.datapath.share_kernel_flows(self.registry.len())?;
        let most = self.datapath.kernel_share(NO_SLOT)?.most / 2;
        let refused = self.refused(unsure)?;
        let mut connections = tracked_connections()?;
        // Where others' rules are heeded, connection tracking sees what is only bridged, too.
        connections.retain(|connection| !self.heeding.has_been_on() || !owners.is_bridged(connection));
        for connection in &connections {
            self.claim(&connection.reply, noticed)?;
        }
        let flows = owners.flows(&connections);
        let too_many = too_many(&flows, most);
        let has_room = |slot: &Option<u32>| slot.is_none_or(|slot| !too_many.contains(&slot));
        for flow in flows.iter().filter(|(_, slot)| has_room(slot)).map(|(flow, _)| flow) {
            let noted = self.datapath.maps.kernel_flows.insert(flow, KernelFlow { noticed }, 0);
            noted.map_err(in_map("KERNEL_FLOWS"))?;
        }
        self.put_apart(|attachment| too_many.contains(&attachment.slot))?;
        for ifindex in owners.ports(&connections).union(unsure) {
            self.datapath.write_affinity(*ifindex, FlowAffinity::Lookup)?;
        }
        // Of these a flow was not recorded meanwhile.
        let now = self.refused(unsure)?;
        self.put_apart(|attachment| now.get(&attachment.slot) != refused.get(&attachment.slot))?;
        self.kernel_flows.sweep_soon();
        Ok(flows.len())
    }

    /// How many flows of the containers with these host ends there was no room for, by counter slot.
    fn refused(&self, hosts: &HashSet<u32>) -> Result<HashMap<u32, u64>, KernelError> {
        let of = self.registry.attachments().filter(|it| hosts.contains(&it.port.host.index));
        of.map(|it| Ok((it.slot, self.datapath.kernel_share(it.slot)?.refused))).collect()
    }

    /// A connection of the node's own, or one that the kernel masquerades, keeps its tuple outside.
    fn claim(&mut self, reply: &Tuple, noticed: u64) -> Result<(), KernelError> {
        let has_ports = matches!(reply.protocol, TCP | UDP);
        if !has_ports || !self.is_own_address(reply.destination.ip()) {
            return Ok(());
        }
        let answer = tuple_key(OUTSIDE, reply);
        let claimed = self.datapath.maps.claims.insert(answer, KernelFlow { noticed }, 0);
        Ok(claimed.map_err(in_map("CLAIMS"))?)
    }
}

/// The counter slots of containers with more than `most` flows.
fn too_many(flows: &HashMap<FlowKey, Option<u32>>, most: u32) -> HashSet<u32> {
    let mut of_each: HashMap<u32, u32> = HashMap::new();
    for slot in flows.values().flatten() {
        *of_each.entry(*slot).or_default() += 1;
    }
    of_each.into_iter().filter(|(_, flows)| *flows > most).map(|(slot, _)| slot).collect()
}
