//! One container interface, attached.

use std::net::IpAddr;

use shunt_agent_api::{BridgePort, PortMapping};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

use super::port_flags::port_flags;
use super::settings::Settings;

/// What the plugin's marks (aliases) on containers' interfaces begin with.
pub const PORT_MARK: &str = "shunt:";

/// One container interface, attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What was asked for.
    pub port: BridgePort,
    /// `port.mac`, parsed.
    pub mac: Mac,
    /// Its counters.
    pub slot: u32,
    /// The container's end.
    pub peer: PeerEnd,
    /// Others' filters and qdiscs on its host end.
    pub external: External,
    /// What others have set on its port of the kernel's bridge.
    pub settings: Settings,
    /// Whether its programs are left to the deletion of its link.
    pub abandoned: bool,
    /// Whether VLAN interfaces are on the container's end.
    pub is_parent: bool,
    /// Whether the programs see to its masquerading; else the kernel does.
    pub by_programs: bool,
    /// Whether others' rules are asked for its flows with other ports.
    pub heeded: bool,
    /// Whether the kernel opens the connections to its host ports, because others' rules are asked.
    pub opened: bool,
    /// Whether the programs carry what the kernel opens for it behind others' rules, by host ports or masqueraded.
    pub carried: bool,
    /// The addresses of those VLAN interfaces, which its source guard allows.
    pub lent: Vec<IpAddr>,
}

impl Attachment {
    /// A port that nothing is known of but what was asked for and this.
    pub fn new(port: BridgePort, mac: Mac, slot: u32, peer: PeerEnd) -> Self {
        Self {
            port,
            mac,
            slot,
            peer,
            external: External::default(),
            settings: Settings::default(),
            abandoned: false,
            is_parent: false,
            by_programs: false,
            heeded: false,
            opened: false,
            carried: false,
            lent: Vec::new(),
        }
    }

    /// Whether it has restrictions; then its programs fail closed.
    pub fn is_restricted(&self) -> bool {
        self.port.is_restricted()
    }

    /// Whether its programs have guards behind them. Ports in VLANs never use the kernel's bridge.
    pub fn is_guarded(&self) -> bool {
        self.is_restricted() && self.port.is_bridged()
    }

    /// Whether its packets are masqueraded, and the programs may do so. Packets of a port in a VLAN enter the node through the
    /// VLAN's gateway: the kernel masquerades them.
    pub fn is_masqueraded(&self) -> bool {
        self.port.is_bridged() && !self.port.masquerade.is_empty()
    }

    /// Whether rules of nf_tables may be made of what it asks for.
    pub fn has_rules(&self) -> bool {
        !self.port.masquerade.is_empty() || !self.port.mappings.is_empty()
    }

    /// Whether the programs see to its masquerading: they begin its connections, or carry those that the kernel begins, or some that they have begun may
    /// live.
    pub fn is_masqueraded_by_programs(&self) -> bool {
        self.by_programs && self.is_masqueraded()
    }

    /// Whether it has host ports or the programs masquerade it, and so a program behind the others.
    pub fn is_translated(&self) -> bool {
        !self.port.mappings.is_empty() || self.is_masqueraded_by_programs()
    }

    /// The target of a host port: the container's first address of each of its families.
    pub fn mapped_ips(&self, mapping: &PortMapping) -> impl Iterator<Item = IpAddr> {
        let first = |is_of: fn(&IpAddr) -> bool| self.port.ips.iter().copied().find(is_of);
        let firsts = [first(IpAddr::is_ipv4), first(IpAddr::is_ipv6)];
        firsts.into_iter().flatten().filter(|ip| mapping.is_of_family(*ip))
    }

    /// The station of its FDB entry in the kernel's bridge, and whether that is fixed; none for a port in VLANs.
    pub fn known_station(&self) -> Option<(Mac, bool)> {
        let restrictions = &self.port.restrictions;
        restrictions.vlans.is_none().then_some((self.mac, restrictions.is_checked()))
    }

    /// Whether it is in its bridge's flood list.
    pub fn is_flooded_to(&self) -> bool {
        self.port.restrictions.vlans.is_some() || self.port.vlan.is_some_and(|vlan| !vlan.within)
    }

    /// Whether the bridge port has all required flags; additional ones are the operator's.
    pub fn is_served_by(&self, link: &Link) -> bool {
        self.expected_flags(link) == link.port_flags
    }

    /// The flags that its bridge port should have: the required ones, and those that others have added.
    pub fn expected_flags(&self, link: &Link) -> PortFlags {
        link.port_flags.and(port_flags(&self.port))
    }
}

/// The state of a container's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// It receives nothing.
    Down,
    /// The plugin sets it up; no event has confirmed that yet.
    ComingUp,
    /// It receives packets.
    Up,
}

impl PeerEnd {
    /// The state from the host end's carrier, and whether the plugin sets the end up.
    pub fn new(carrier: bool, is_coming: bool) -> Self {
        match (carrier, is_coming) {
            (true, _) => Self::Up,
            (false, true) => Self::ComingUp,
            (false, false) => Self::Down,
        }
    }

    /// The state after an event. An end that is still being set up has not gone down.
    #[must_use]
    pub fn seen(self, carrier: bool) -> Self {
        Self::new(carrier, self == Self::ComingUp)
    }

    /// Whether it receives packets.
    pub fn is_up(self) -> bool {
        self != Self::Down
    }
}

/// What others have put on a host end or behind it, which packets must not bypass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct External {
    /// Filters on what the container sends.
    pub filters: bool,
    /// A qdisc (the agent's for a limit, or another user's) or filters towards the container.
    pub queue: bool,
    /// An XDP program in the driver of the container's end, which sees only what comes through the host's end.
    pub xdp: bool,
}
