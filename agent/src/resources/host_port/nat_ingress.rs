//! The node's addresses, and the interfaces that run `from_wire` and `to_wire` (or, without an Ethernet header, `from_tunnel` and
//! `to_tunnel`) for host ports and masquerading.
//!
//! For host ports these are every interface with an address of the node and every other one that leads to the node (`ways_in`); and the
//! agent's bridges, through which containers reach the node. For masquerading they are the declared uplinks or, without any, every
//! interface with an address. The programs are attached only while there is need for them (`masquerade/by_programs.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use shunt_dataplane::abi::MAX_LOCALS;
use shunt_netlink::address::Address;
use shunt_netlink::link::Link;

use super::Ingress;
use crate::datapath::attach::hook::{Hook, Program};
use crate::datapath::{DatapathError, maps};
use crate::kernel::KernelError;
use crate::registry::Uplink;
use crate::resources::Node;

/// The programs of NAT ingress, and those beside them on the way out.
pub(crate) const NAT_INGRESS: [Program; 4] =
    [Program::FromWire, Program::FromTunnel, Program::ToWire, Program::ToTunnel];

impl Node {
    /// Reads every address of the node and updates the map.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn read_addresses(&mut self) -> Result<(), KernelError> {
        let present = self.kernel.addresses()?;
        self.nat_ingress.addresses.clear();
        self.nat_ingress.beyond.clear();
        for address in present {
            self.nat_ingress.addresses.entry(address.ip()).or_default().insert(address.index);
        }
        self.nat_ingress.local_routes = self.find_local_routes()?;
        let routes = self.nat_ingress.local_routes.iter().copied();
        let prefixes: BTreeSet<_> =
            self.nat_ingress.addresses.keys().copied().map(IpNet::from).chain(routes).collect();
        self.datapath.retain_locals(|prefix| prefixes.contains(&prefix))?;
        prefixes.into_iter().try_for_each(|prefix| self.write_local(prefix))
    }

    /// Makes a prefix the node's for the programs. One that does not fit is left out, and the status says so.
    pub(super) fn write_local(&mut self, prefix: IpNet) -> Result<(), KernelError> {
        match self.datapath.write_local(prefix) {
            Err(DatapathError::Map { source, .. }) if maps::is_full(&source) => {
                self.nat_ingress.beyond.insert(prefix);
            }
            written => written?,
        }
        Ok(())
    }

    /// A prefix is the node's no more. There is room for another one.
    pub(super) fn forget_local(&mut self, prefix: IpNet) -> Result<(), KernelError> {
        self.datapath.erase_local(prefix)?;
        if !self.nat_ingress.beyond.remove(&prefix)
            && let Some(next) = self.nat_ingress.beyond.pop_first()
        {
            self.write_local(next)?;
        }
        Ok(())
    }

    /// Whether an address is one of the node's.
    pub(crate) fn is_own_address(&self, ip: IpAddr) -> bool {
        self.nat_ingress.addresses.contains_key(&ip)
    }

    /// The node's addresses.
    pub(crate) fn own_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.nat_ingress.addresses.keys().copied()
    }

    /// The warning about addresses that do not fit.
    pub(crate) fn addresses_beyond(&self) -> Option<String> {
        let count = self.nat_ingress.beyond.len();
        (count > 0).then(|| {
            format!(
                "{count} of the node's addresses do not fit into LOCALS, which has room for {MAX_LOCALS}: host ports are \
                 not reached there"
            )
        })
    }

    /// What depends on addresses is looked at once after all that has happened, in [`Self::follow_addresses`].
    pub(crate) fn addressed(&mut self, new: Address) -> Result<(), KernelError> {
        // A known address may be of another kind now.
        self.nat_ingress.readdressed = true;
        let is_known = !self.nat_ingress.addresses.entry(new.ip()).or_default().insert(new.index);
        if is_known { Ok(()) } else { self.write_local(new.ip().into()) }
    }

    /// Makes what depends on the node's addresses follow them, if they have changed.
    pub(crate) fn follow_addresses(&mut self) {
        if std::mem::take(&mut self.nat_ingress.readdressed) {
            self.update_nat_ingress();
        }
    }

    /// An address stays the node's as long as any interface has it.
    pub(crate) fn unaddressed(&mut self, old: Address) -> Result<(), KernelError> {
        let Some(holders) = self.nat_ingress.addresses.get_mut(&old.ip()) else { return Ok(()) };
        self.nat_ingress.readdressed = true;
        holders.remove(&old.index);
        if holders.is_empty() {
            self.nat_ingress.addresses.remove(&old.ip());
            self.forget_local(old.ip().into())?;
        }
        Ok(())
    }

    /// Whether a new or changed link is a declared uplink without its program.
    pub(crate) fn may_be_nat_ingress(&self, link: &Link) -> bool {
        !self.nat_ingress.hooks.contains_key(&link.index)
            && self.ledger.uplinks().any(|name| name == link.name)
    }

    /// Attaches the programs where they are needed and detaches them elsewhere. What cannot be attached is tried again at each tick.
    pub(crate) fn update_nat_ingress(&mut self) {
        self.watch_sockets();
        let is_needed = self.is_mapped() || self.is_masqueraded_by_programs();
        if is_needed && self.nat_ingress.local_routes.is_empty() {
            self.follow_local_routes();
        }
        let bridges = self.is_mapped();
        self.mark_uplinks(bridges);
        if !bridges {
            self.forget_ways_in();
        }
        let wanted = if is_needed { self.find_nat_ingress(bridges) } else { BTreeMap::new() };
        let (here, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.nat_ingress.hooks)
            .into_iter()
            .partition(|(index, hook)| wanted.get(index) == Some(hook));
        self.nat_ingress.hooks = here;
        for hook in gone.into_values() {
            for hook in [way_out(&hook), hook] {
                if let Err(error) = self.datapath.detach(&hook) {
                    tracing::warn!(%hook, %error, "cannot detach");
                }
            }
        }
        for hook in std::mem::take(&mut self.nat_ingress.missing).into_values() {
            self.resolve(&Ingress::of(hook));
        }
        for (index, hook) in wanted {
            if !self.nat_ingress.hooks.contains_key(&index) {
                self.begin(&Ingress::of(hook));
            }
        }
        self.update_reverse_paths();
        self.update_masquerade_interfaces();
    }

    /// Has the uplinks of bridges mark what they bring to the node, as long as the bridges' programs look for it.
    fn mark_uplinks(&mut self, mapped: bool) {
        let others = self.registry.uplinks.values().filter(|uplink| uplink.mapped != mapped).cloned();
        for uplink in others.collect::<Vec<_>>() {
            let uplink = Uplink { mapped, ..uplink };
            self.registry.uplinks.insert(uplink.link.index, uplink.clone());
            if let Err(error) = self.datapath.write_forwarding(&uplink) {
                tracing::warn!(uplink = uplink.link.name, %error, "cannot write the uplink's entry");
            }
        }
    }

    /// Detaches what an earlier agent left on other interfaces.
    pub(crate) fn sweep_nat_ingress(&mut self) {
        let pinned = self.datapath.pinned().unwrap_or_default();
        let left = pinned
            .into_iter()
            .filter(|pin| NAT_INGRESS.contains(&pin.program))
            .map(|pin| (pin.ifindex, pin.program));
        let candidates = self.find_nat_ingress(true).into_values().flat_map(|hook| [way_out(&hook), hook]);
        let left: BTreeSet<_> = left.chain(candidates.map(|hook| (hook.ifindex, hook.program))).collect();
        let kept: BTreeSet<_> =
            self.nat_ingress_hooks().into_iter().map(|hook| (hook.ifindex, hook.program)).collect();
        for (ifindex, program) in left.difference(&kept).copied() {
            let ifname = self.kernel.link(ifindex).ok().flatten().map(|link| link.name).unwrap_or_default();
            if let Err(error) = self.datapath.detach(&Hook::open(program, ifindex, ifname)) {
                tracing::warn!(ifindex, %error, "cannot detach the program of an earlier agent");
            }
        }
    }

    pub(crate) fn is_mapped(&self) -> bool {
        self.registry.has_mapped()
    }

    /// All attached programs.
    pub(crate) fn nat_ingress_hooks(&self) -> Vec<Hook> {
        self.nat_ingress.hooks.values().flat_map(|hook| self.with_way_out(hook)).collect()
    }

    /// A program of NAT ingress, behind the one that sees what the kernel sends by the same interface. Where that leads to containers, the
    /// programs of their bridge do.
    pub(super) fn with_way_out(&self, hook: &Hook) -> Vec<Hook> {
        let out = (!self.leads_to_containers(hook.ifindex)).then(|| way_out(hook));
        [hook.clone()].into_iter().chain(out).collect()
    }

    /// Whether an interface is a bridge or a VLAN's gateway, which lead to containers, and not out of the node.
    pub(crate) fn leads_to_containers(&self, ifindex: u32) -> bool {
        self.registry.bridge(ifindex).is_some() || self.registry.gateway_by_end(ifindex).is_some()
    }

    /// The interfaces that need the programs.
    fn find_nat_ingress(&mut self, mapped: bool) -> BTreeMap<u32, Hook> {
        let mut declared: Vec<String> = Vec::new();
        let mut hooks = BTreeMap::new();
        if mapped {
            if let Err(error) = self.read_ways_in() {
                tracing::warn!(%error, "cannot list the interfaces that lead to host ports");
            }
            hooks = self.hooks_of_ways_in();
        } else {
            declared.extend(self.ledger.uplinks().map(str::to_owned));
        }
        let links = if declared.is_empty() {
            let holders: BTreeSet<u32> = self.nat_ingress.addresses.values().flatten().copied().collect();
            let others = holders.into_iter().filter(|index| !self.is_known(*index)).collect::<Vec<_>>();
            others.into_iter().map(|index| self.kernel.link(index)).collect::<Vec<_>>()
        } else {
            declared.iter().map(|name| self.kernel.link_named(name)).collect()
        };
        let found = links.into_iter().filter_map(|link| {
            link.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read an uplink");
                None
            })
        });
        // Bridges and gateways, too: containers reach the node through them.
        let gateways: Vec<_> = match mapped {
            true => self.registry.gateways.values().map(|it| (it.link.index, it.link.name.clone())).collect(),
            false => Vec::new(),
        };
        let bridges: Vec<_> = match mapped {
            true => self.registry.bridges().map(|bridge| bridge.link.clone()).collect(),
            false => Vec::new(),
        };
        let gateways = gateways.into_iter().map(|(index, name)| Hook::open(Program::FromWire, index, name));
        let others = found.chain(bridges).filter_map(|link| hook(&link)).chain(gateways);
        hooks.extend(others.map(|hook| (hook.ifindex, hook)));
        hooks
    }
}

/// The program on the way out beside one of NAT ingress.
fn way_out(hook: &Hook) -> Hook {
    let program = if hook.program == Program::FromTunnel { Program::ToTunnel } else { Program::ToWire };
    Hook::open(program, hook.ifindex, hook.ifname.clone())
}

/// The program for a link; none for the loopback, InfiniBand and the like.
pub(super) fn hook(link: &Link) -> Option<Hook> {
    let program = match (link.mac, link.bare) {
        _ if link.name == "lo" => return None,
        (_, true) => Program::FromTunnel,
        (Some(_), false) => Program::FromWire,
        (None, false) => return None,
    };
    Some(Hook::open(program, link.index, link.name.clone()))
}
