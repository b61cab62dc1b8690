//! Decides which interfaces masquerade in the fast path, and whether the programs begin masqueraded connections.
//!
//! Such an interface runs `from_wire`. With several addresses a connection gets the one that the kernel would choose (`sources`), and keeps
//! it as long as the interface has it. Interfaces without Ethernet are the kernel's. The fast path bypasses netfilter, so the programs begin no
//! connection while somebody else has rules there; established connections continue.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::time::Duration;

use shunt_dataplane::abi::MAX_OUTLETS;
use shunt_dataplane::abi::translation::Outlet;
use shunt_netlink::address::Address;
use shunt_netlink::nf_tables::generation;

use super::Outlets;
use super::ways_out::{WayOut, WaysOut};
use crate::config::Masquerading;
use crate::datapath::attach::hook::Program;
use crate::failpoints;
use crate::kernel::KernelError;
use crate::resources::external_rule::filters;
use crate::resources::reconcile::{Cause, Resource as _};
use crate::resources::{Node, Refusal};

/// Period of the check for external filters and for the node's port range: neither sends events. Those of nf_tables are looked at whenever somebody has
/// changed any.
const PERIOD: Duration = Duration::from_secs(5);

/// The ephemeral ports of the node, of both families.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

impl Node {
    pub(crate) fn is_masqueraded(&self) -> bool {
        self.registry.has_masqueraded()
    }

    /// Whether any interface masquerades in the fast path.
    pub(crate) fn has_masquerade_interfaces(&self) -> bool {
        self.datapath.outlets().is_ok_and(|outlets| !outlets.is_empty())
    }

    /// Checks periodically for changes without events.
    pub(crate) fn check_masquerading(&mut self) {
        if !self.is_masqueraded() {
            return;
        }
        let generation = generation();
        let is_over = |last| failpoints::now().duration_since(last) > PERIOD;
        if self.masquerade.generation != generation || self.masquerade.last.is_none_or(is_over) {
            (self.masquerade.last, self.masquerade.generation) = (Some(failpoints::now()), generation);
            self.look_for_external_filters();
            self.update_masquerade_interfaces();
        }
    }

    /// Decides whether the programs or the kernel begin masqueraded connections.
    pub(crate) fn look_for_external_filters(&mut self) {
        let external_filter = match self.masquerade.mode {
            Masquerading::Programs => None,
            Masquerading::Kernel => Some("the configuration".to_owned()),
            // If rules cannot be listed, there may be some.
            Masquerading::Auto => filters::first().unwrap_or_else(|error| Some(error.to_string())),
        };
        let begins = external_filter.is_none();
        if self.masquerade.external_filter != external_filter {
            match &external_filter {
                Some(who) => tracing::info!(who, "masqueraded connections are left to the kernel"),
                None => tracing::info!("masqueraded connections begin in the programs"),
            }
            self.masquerade.external_filter = external_filter;
        }
        if self.datapath.begins_masquerading == begins {
            return;
        }
        self.datapath.begins_masquerading = begins;
        if let Err(error) = self.follow_external_filters(begins) {
            tracing::warn!(%error, "cannot switch between programs and kernel for masquerading");
        }
    }

    fn follow_external_filters(&mut self, begins: bool) -> Result<(), KernelError> {
        if !begins {
            self.note_last_begun();
            return Ok(self.datapath.retain_masquerades(|_| false)?);
        }
        self.learn_masqueraded()?;
        for attachment in self.registry.attachments() {
            self.datapath.write_masquerades(attachment)?;
        }
        Ok(())
    }

    /// The kernel's connections stay with the kernel.
    pub(crate) fn learn_masqueraded(&mut self) -> Result<(), KernelError> {
        if !self.is_masqueraded() {
            return Ok(());
        }
        let flows = self.learn_from_conntrack(&HashSet::new())?;
        tracing::debug!(flows, "learned the kernel's flows before masquerading");
        Ok(())
    }

    /// Decides by which interfaces and addresses the programs masquerade, and makes it so.
    pub(crate) fn update_masquerade_interfaces(&mut self) {
        let updated = self.find_ways_out().map_err(Refusal::from).and_then(|wanted| {
            if self.masquerade.ways_out == wanted && self.masquerade.is_applied {
                return Ok(());
            }
            self.masquerade.ways_out = wanted;
            Outlets.apply(self, Cause::New)
        });
        if let Err(error) = updated {
            tracing::warn!(%error, "cannot update the masquerading interfaces");
        }
    }

    fn find_ways_out(&mut self) -> Result<WaysOut, KernelError> {
        if !self.is_mapped() && !self.is_masqueraded_by_programs() {
            return Ok(WaysOut::default());
        }
        let mut addresses: BTreeMap<u32, Vec<Address>> = BTreeMap::new();
        for own in self.kernel.addresses()? {
            addresses.entry(own.index).or_default().push(own);
        }
        let mut ways = self.outward();
        ways.extend(self.to_mapped());
        for way in &mut ways {
            way.addresses = addresses.get(&way.ifindex).cloned().unwrap_or_default();
        }
        Ok(WaysOut::of(ways))
    }

    /// The interfaces by which masqueraded connections leave, also those of the kernel's that get another port beside host ports.
    fn outward(&self) -> Vec<WayOut> {
        let Some((low, high)) = port_range() else { return Vec::new() };
        let outlet = Some(Outlet { low, high, seed: self.masquerade.seed });
        let is_declared =
            |name: &str| self.ledger.uplinks().next().is_none() || self.ledger.uplinks().any(|it| it == name);
        let wires = self.nat_ingress.hooks.iter().filter(|(ifindex, hook)| {
            // Host ports have more ways in than masqueraded connections have out.
            let leads_out = hook.program == Program::FromWire && !self.leads_to_containers(**ifindex);
            leads_out && is_declared(&hook.ifname)
        });
        wires.map(|(&ifindex, hook)| WayOut { outlet, ..way(ifindex, &hook.ifname) }).collect()
    }

    /// The bridges of host ports' containers, which see the node there in place of their neighbours.
    fn to_mapped(&self) -> Vec<WayOut> {
        let mapped = self.registry.with_mappings();
        let bridges: BTreeMap<_, _> =
            mapped.map(|attachment| (attachment.port.bridge.index, &attachment.port.bridge.name)).collect();
        bridges.into_iter().map(|(ifindex, ifname)| way(ifindex, ifname)).collect()
    }

    /// The warning about interfaces whose addresses do not fit.
    pub(crate) fn ways_out_beyond(&self) -> Option<String> {
        let beyond = &self.masquerade.ways_out.beyond;
        (!beyond.is_empty()).then(|| {
            format!(
                "the addresses of {} do not fit into OUTLETS, which has room for {MAX_OUTLETS}: the kernel masquerades what leaves there",
                beyond.join(", ")
            )
        })
    }
}

/// An interface, whose addresses are not known yet.
fn way(ifindex: u32, ifname: &str) -> WayOut {
    WayOut {
        ifindex,
        ifname: ifname.to_owned(),
        addresses: Vec::new(),
        prefers_temporary: prefers_temporary(ifname),
        outlet: None,
    }
}

/// Whether the kernel prefers an interface's temporary addresses (RFC 8981), ip-sysctl(`use_tempaddr`).
fn prefers_temporary(ifname: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{ifname}/use_tempaddr"));
    text.is_ok_and(|text| text.trim().parse().is_ok_and(|how: i32| how >= 2))
}

/// The node's first and last ephemeral port.
fn port_range() -> Option<(u16, u16)> {
    let text = fs::read_to_string(PORT_RANGE).ok()?;
    let mut words = text.split_whitespace().map_while(|word| word.parse().ok());
    Some((words.next()?, words.next()?))
}
