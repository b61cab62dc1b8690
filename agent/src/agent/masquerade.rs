//! By which ways out of the node the programs masquerade, and whether they begin to.
//!
//! A way out is an interface that `from_wire` runs on (behind one without Ethernet the kernel masquerades), with one address of a family that may be given to others' packets: where
//! there are several, the kernel chooses, and so masquerades. What the programs take never meets netfilter. So they begin nothing
//! while somebody else has rules there, for a rule may translate or forbid it; what they have begun goes on.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use shunt_dataplane::abi::translation::Outlet;

use super::Agent;
use crate::bpf::hook::Program;
use crate::config::Masquerading;
use crate::external_filters;
use crate::failpoints;
use crate::kernel::KernelError;
use crate::registry::Attachment;

/// How often it is looked whether anybody has rules, and which ports the node gives its sockets: neither is told.
const PERIOD: Duration = Duration::from_secs(5);

/// The ports of the node's own sockets, of both families.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// What is known of the ways out.
#[derive(Debug)]
pub(super) struct Masquerade {
    mode: Masquerading,
    last: Option<Instant>,
    /// Who has rules, as it was last said in the log.
    external_filter: Option<String>,
    seed: u32,
}

impl Masquerade {
    pub(super) fn new(mode: Masquerading) -> Self {
        // Keyed by the kernel's random numbers.
        let seed = RandomState::new().hash_one(0) as u32;
        Self { mode, last: None, external_filter: None, seed }
    }
}

impl Agent {
    pub(super) fn is_masqueraded(&self) -> bool {
        self.registry.attachments().any(Attachment::is_masqueraded)
    }

    /// Whether the programs know of any way out.
    pub(super) fn has_masquerade_interfaces(&self) -> bool {
        self.kernel.outlets().is_ok_and(|outlets| !outlets.is_empty())
    }

    /// Looks, now and then, at what nobody tells.
    pub(super) fn check_masquerading(&mut self) {
        let is_due = self.masquerade.last.is_none_or(|last| failpoints::now().duration_since(last) > PERIOD);
        if is_due && self.is_masqueraded() {
            self.masquerade.last = Some(failpoints::now());
            self.look_for_external_filters();
            self.update_masquerade_interfaces();
        }
    }

    /// Has the programs begin masqueraded connections, or the kernel, as it is right now.
    pub(super) fn look_for_external_filters(&mut self) {
        let external_filter = match self.masquerade.mode {
            Masquerading::Programs => None,
            Masquerading::Kernel => Some("the configuration".to_owned()),
            // Whoever cannot be asked may have rules.
            Masquerading::Auto => external_filters::first().unwrap_or_else(|error| Some(error.to_string())),
        };
        let begins = external_filter.is_none();
        if self.masquerade.external_filter != external_filter {
            match &external_filter {
                Some(who) => tracing::info!(who, "masqueraded connections are left to the kernel"),
                None => tracing::info!("masqueraded connections begin in the programs"),
            }
            self.masquerade.external_filter = external_filter;
        }
        if self.kernel.begins_masquerading == begins {
            return;
        }
        self.kernel.begins_masquerading = begins;
        if let Err(error) = self.follow_external_filters(begins) {
            tracing::warn!(%error, "cannot switch between programs and kernel for masquerading");
        }
    }

    fn follow_external_filters(&mut self, begins: bool) -> Result<(), KernelError> {
        if !begins {
            return self.kernel.retain_masquerades(|_| false);
        }
        self.learn_masqueraded()?;
        for attachment in self.registry.attachments() {
            self.kernel.write_masquerades(attachment)?;
        }
        Ok(())
    }

    /// What the kernel has begun stays with it.
    fn learn_masqueraded(&mut self) -> Result<(), KernelError> {
        if !self.is_masqueraded() {
            return Ok(());
        }
        let flows = self.learn_from_conntrack(&HashSet::new())?;
        tracing::debug!(flows, "learned the kernel's flows before masquerading");
        Ok(())
    }

    /// Brings the ways out in line with the interfaces and their addresses.
    pub(super) fn update_masquerade_interfaces(&mut self) {
        if let Err(error) = self.sync_masquerade_interfaces() {
            tracing::warn!(%error, "cannot update the masquerading interfaces");
        }
    }

    fn sync_masquerade_interfaces(&mut self) -> Result<(), KernelError> {
        let known = self.kernel.outlets()?;
        let wanted = if self.is_masqueraded() { self.find_masquerade_interfaces()? } else { BTreeMap::new() };
        for ifindex in known.keys().filter(|ifindex| !wanted.contains_key(ifindex)) {
            self.kernel.erase_outlet(*ifindex)?;
        }
        if wanted.keys().any(|ifindex| !known.contains_key(ifindex)) {
            self.learn_masqueraded()?;
        }
        for (ifindex, outlet) in wanted {
            if known.get(&ifindex) != Some(&outlet) {
                self.kernel.write_outlet(ifindex, outlet)?;
            }
        }
        Ok(())
    }

    fn find_masquerade_interfaces(&mut self) -> Result<BTreeMap<u32, Outlet>, KernelError> {
        let Some((low, high)) = port_range() else { return Ok(BTreeMap::new()) };
        let sources = self.kernel.sources()?;
        // Beyond bridges and gateways are containers.
        let wires = self.nat_ingress.hooks.iter().filter(|(ifindex, hook)| {
            hook.program == Program::FromWire
                && self.registry.bridge(**ifindex).is_none()
                && self.registry.gateway_by_end(**ifindex).is_none()
        });
        let outlet = |ifindex: u32| {
            let only = |is_family: fn(&IpAddr) -> bool| {
                let mut found = sources.iter().filter(|own| own.index == ifindex).map(|own| own.ip());
                let mut found = found.by_ref().filter(is_family);
                found.next().filter(|_| found.next().is_none()).map(Into::into).unwrap_or_default()
            };
            let (v4, v6) = (only(IpAddr::is_ipv4), only(IpAddr::is_ipv6));
            Outlet { v4, v6, low, high, seed: self.masquerade.seed }
        };
        Ok(wires.map(|(ifindex, _)| (*ifindex, outlet(*ifindex))).collect())
    }
}

/// The first and the last port that the node gives its own sockets.
fn port_range() -> Option<(u16, u16)> {
    let text = fs::read_to_string(PORT_RANGE).ok()?;
    let mut words = text.split_whitespace().map_while(|word| word.parse().ok());
    Some((words.next()?, words.next()?))
}
