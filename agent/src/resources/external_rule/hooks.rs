//! The hooks of the kernel that traffic in the fast path bypasses, and who has rules there.
//!
//! A packet to a host port is taken at tc ingress of the interface by which it enters, and leaves by a neighbour's address or into the
//! container: it meets none of the hooks of IP, nor that of nf_tables' family `netdev` at its way in. A bridged packet meets none of the
//! bridge's, of its ports', and of IP's where br_netfilter shows them bridged packets. What the node sends to a container skips the
//! bridge's output. What comes to a host port is translated by the programs before any chain of the type `nat`.
//! Of legacy iptables and arptables only the use of a
//! table is known; legacy ebtables cannot be asked.

use std::collections::BTreeSet;
use std::fs;

use nix::libc;
use shunt_netlink::bridge_filtering::{filtering_bridge, filtering_bridges};
use shunt_netlink::netfilter::BaseChain;
use shunt_netlink::{Connection, NetlinkError};

use super::filters::{OLD_TABLES, chains, say, table_names};

/// The hook of interfaces in the family `inet` (`NF_INET_INGRESS`).
const INET_INGRESS: u32 = 5;

/// Hooks that packets meet on their way through a node, with their names. Bridges have the same numbers.
const HOOKS: [(u32, &str); 3] = [
    (libc::NF_INET_PRE_ROUTING as u32, "prerouting"),
    (libc::NF_INET_FORWARD as u32, "forward"),
    (libc::NF_INET_POST_ROUTING as u32, "postrouting"),
];

/// Hooks of the family `netdev` (`NF_NETDEV_INGRESS`, `NF_NETDEV_EGRESS`).
const NETDEV_HOOKS: [(u32, &str); 2] = [(0, "ingress"), (1, "egress")];

/// Who has legacy tables of IPv4, of IPv6 and of ARP, and where the names of those in use are.
const TABLES: [(&str, &str); 3] =
    [(IPTABLES, OLD_TABLES[0]), (IPTABLES, OLD_TABLES[1]), ("arptables", "/proc/net/arp_tables_names")];

/// Whose tables routed packets meet, too.
const IPTABLES: &str = "iptables";

/// The type of chains that only translate, and the name of iptables' table that does.
pub(super) const NAT: &str = "nat";

/// Whether br_netfilter shows bridged packets to the rules for routed ones, of IPv4, of IPv6 and of ARP.
const BRIDGED_TOO: [&str; 3] = [
    "/proc/sys/net/bridge/bridge-nf-call-iptables",
    "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
    "/proc/sys/net/bridge/bridge-nf-call-arptables",
];

/// What traffic in the fast path crosses: interfaces, by name, and the rules of IP.
#[derive(Debug, Default)]
pub(crate) struct Crossed {
    /// The bridges' ports that a chain is at: containers' host ends, and uplinks.
    pub(crate) ports: BTreeSet<String>,
    /// Those by which packets to host ports enter the node.
    pub(crate) ways_in: BTreeSet<String>,
    /// The bridges themselves.
    pub(crate) bridges: BTreeSet<String>,
    /// To which rules of IP bridged packets are shown, as [`BRIDGED_TOO`].
    pub(crate) shown: [bool; 3],
    /// The tables of legacy xtables that are in use, as [`TABLES`].
    pub(crate) old_tables: [Vec<String>; 3],
}

impl Crossed {
    /// Finds out which rules of legacy xtables there are, and to which rules of IP the packets of its bridges are shown: by the
    /// namespace's settings, or by a bridge's own.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn with_rules(mut self) -> Result<Self, NetlinkError> {
        self.old_tables = TABLES.map(|(_, path)| table_names(path).lines().map(str::to_owned).collect());
        let settings = BRIDGED_TOO.map(|path| fs::read_to_string(path).ok());
        self.shown = settings.each_ref().map(|it| it.as_ref().is_some_and(|on| on.trim() == "1"));
        // Without br_netfilter there are no settings, and nobody is shown anything. Bridges add to what the namespace shows.
        let may_add = settings.iter().zip(self.shown).any(|(setting, shown)| setting.is_some() && !shown);
        if !may_add {
            return Ok(self);
        }
        let mut kernel = Connection::open()?;
        for name in &self.bridges {
            let Some(bridge) = kernel.get(filtering_bridge(name))? else { continue };
            self.shown.iter_mut().zip(bridge.shows).for_each(|(shown, shows)| *shown |= shows);
        }
        Ok(self)
    }

    /// What traffic of every bridge would cross, whoever its ports are.
    fn of_every_bridge() -> Result<Self, NetlinkError> {
        let bridges =
            Connection::open()?.list(filtering_bridges())?.into_iter().map(|bridge| bridge.name).collect();
        Self { bridges, ..Self::default() }.with_rules()
    }
}

/// Those of these interfaces that any of the chains is at.
pub(crate) fn with_chains<'a>(
    names: impl Iterator<Item = &'a String>,
    chains: &[BaseChain],
) -> BTreeSet<String> {
    let at_interfaces: Vec<_> = chains.iter().filter(|chain| !chain.devices.is_empty()).collect();
    if at_interfaces.is_empty() {
        return BTreeSet::new();
    }
    names.filter(|name| at_interfaces.iter().any(|chain| chain.is_at(name))).cloned().collect()
}

/// Who has rules at hooks that are bypassed, with each hook.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Bypassed {
    /// By packets to host ports.
    pub(crate) host_ports: Vec<String>,
    /// By bridged packets.
    pub(crate) bridged: Vec<String>,
    /// By what the node sends.
    pub(crate) from_node: Vec<String>,
}

/// Who is bypassed, of those who have these chains ([`chains`]) or tables of legacy xtables.
pub(crate) fn bypassed_of(chains: &[BaseChain], crossed: &Crossed) -> Bypassed {
    let mut found = Bypassed::default();
    for chain in chains {
        found.add(chain, crossed);
    }
    for (((kind, path), tables), is_shown) in TABLES.into_iter().zip(&crossed.old_tables).zip(crossed.shown) {
        for table in tables {
            let who = format!("{kind}' table {table}, by {path}");
            found.bridged.extend(is_shown.then(|| who.clone()));
            found.host_ports.extend((kind == IPTABLES && table != NAT).then_some(who));
        }
    }
    found
}

/// Those of these chains that bridged packets meet.
pub(crate) fn met_by_bridged(mut chains: Vec<BaseChain>, crossed: &Crossed) -> Vec<BaseChain> {
    chains.retain(|chain| !Bypassed::of(chain, crossed).bridged.is_empty());
    chains
}

/// Those of these chains that packets to host ports, and their answers, meet.
pub(crate) fn met_by_host_ports<'a>(chains: &'a [BaseChain], crossed: &Crossed) -> Vec<&'a BaseChain> {
    let meets = |chain: &&BaseChain| !Bypassed::of(chain, crossed).host_ports.is_empty();
    chains.iter().filter(meets).collect()
}

/// Those of these chains that translated packets meet, with those of any interface: the kernel may take what leaves the node, and what comes, by each.
pub(crate) fn met_by_translated<'a>(chains: &'a [BaseChain], crossed: &Crossed) -> Vec<&'a BaseChain> {
    let meets =
        |chain: &&BaseChain| !chain.devices.is_empty() || !Bypassed::of(chain, crossed).host_ports.is_empty();
    chains.iter().filter(meets).collect()
}

/// Those of these chains that bridged packets meet, or what the node sends by a bridge, and the others.
pub(crate) fn met_on_bridges(chains: Vec<BaseChain>, crossed: &Crossed) -> (Vec<BaseChain>, Vec<BaseChain>) {
    chains.into_iter().partition(|chain| {
        let found = Bypassed::of(chain, crossed);
        !found.bridged.is_empty() || !found.from_node.is_empty()
    })
}

/// The first who has rules for bridged packets of whatever interface, but for translations.
///
/// # Errors
/// The kernel cannot list its chains, or its bridges.
pub(crate) fn first_of_bridged() -> Result<Option<String>, NetlinkError> {
    let mut chains = chains()?;
    chains.retain(|chain| chain.kind != NAT);
    Ok(bypassed_of(&chains, &Crossed::of_every_bridge()?).bridged.into_iter().next())
}

/// Whether what comes to a chain has been tracked. Elsewhere it may come by before, and has no state then; at an interface it has none.
pub(super) fn is_behind_tracking(chain: &BaseChain) -> bool {
    i32::from(chain.family) != libc::NFPROTO_NETDEV
        && [libc::NF_INET_FORWARD, libc::NF_INET_POST_ROUTING].contains(&(chain.hook as i32))
}

impl Bypassed {
    fn of(chain: &BaseChain, crossed: &Crossed) -> Self {
        let mut found = Self::default();
        found.add(chain, crossed);
        found
    }

    fn add(&mut self, chain: &BaseChain, crossed: &Crossed) {
        let [v4_shown, v6_shown, _] = crossed.shown;
        let at = |hooks: &[(u32, &str)]| {
            let hook = hooks.iter().find(|(number, _)| *number == chain.hook)?;
            Some(format!("{} ({})", say(chain), hook.1))
        };
        match chain.family.into() {
            libc::NFPROTO_INET if chain.hook == INET_INGRESS => self.add_device(chain, "ingress", crossed),
            libc::NFPROTO_INET | libc::NFPROTO_IPV4 | libc::NFPROTO_IPV6 => {
                let Some(who) = at(&HOOKS) else { return };
                let is_shown = match chain.family.into() {
                    libc::NFPROTO_IPV4 => v4_shown,
                    libc::NFPROTO_IPV6 => v6_shown,
                    _ => v4_shown || v6_shown,
                };
                self.bridged.extend(is_shown.then(|| who.clone()));
                self.host_ports.extend((chain.kind != NAT).then_some(who));
            }
            libc::NFPROTO_BRIDGE if chain.hook == libc::NF_INET_LOCAL_OUT as u32 => {
                self.from_node.push(format!("{} (output)", say(chain)));
            }
            libc::NFPROTO_BRIDGE => {
                let who = at(&HOOKS);
                let is_last = chain.hook == libc::NF_INET_POST_ROUTING as u32;
                self.from_node.extend(who.clone().filter(|_| is_last));
                self.bridged.extend(who);
            }
            libc::NFPROTO_NETDEV => {
                let hook = NETDEV_HOOKS.iter().find(|(number, _)| *number == chain.hook);
                if let Some((_, hook)) = hook {
                    self.add_device(chain, hook, crossed);
                }
            }
            _ => {}
        }
    }

    /// A chain of interfaces. What enters by a bridge device is bridged before, or on its way to a host port.
    fn add_device(&mut self, chain: &BaseChain, hook: &str, crossed: &Crossed) {
        let first_of = |names: &BTreeSet<String>| {
            let name = names.iter().find(|name| chain.is_at(name))?;
            Some(format!("{} ({hook} of {name})", say(chain)))
        };
        let ways_to_host_ports = if hook == "ingress" { &crossed.ways_in } else { &crossed.bridges };
        if let Some(who) = first_of(&crossed.ports) {
            self.from_node.extend((hook != "ingress").then(|| who.clone()));
            self.bridged.push(who.clone());
            self.host_ports.push(who);
        } else {
            self.host_ports.extend(first_of(ways_to_host_ports));
        }
    }
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
