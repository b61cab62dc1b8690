//! Where a program runs: one program on one interface.

use std::fmt;

use aya::programs::TcAttachType;

/// The programs, named from the packet's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// What a container sends: tc ingress of its host veth end.
    FromContainer,
    /// What comes to a container by the kernel's way: tc egress of its host veth end.
    ToContainer,
    /// What the node itself sends into a bridge: tc egress of the bridge device.
    FromHost,
    /// What a container that host ports lead to sends to the node: tc ingress of its host veth end, behind
    /// [`Program::FromContainer`].
    FromMapped,
    /// What comes from outside: tc ingress of an uplink.
    FromWire,
    /// The same of an uplink whose packets have no Ethernet header.
    FromTunnel,
    /// What a container sends by a VLAN interface: tc ingress of its host veth end.
    FromVlan,
    /// What comes in by a VLAN interface's master: tc ingress of it.
    FromTrunk,
    /// What comes to a container that has VLAN interfaces on its interface: tc egress of that one's host veth end.
    ToTrunk,
    /// What comes in by a bridge's uplink: tc ingress of it.
    FromUplink,
    /// What goes out by a bridge's uplink: tc egress of it.
    ToUplink,
    /// What a restricted port's [`Program::FromContainer`] has left to the kernel, and nothing else: behind all of ours.
    GuardFrom,
    /// The same of [`Program::ToContainer`].
    GuardTo,
}

impl Program {
    /// Every program.
    pub const ALL: [Self; 13] = [
        Self::FromContainer,
        Self::ToContainer,
        Self::FromHost,
        Self::FromMapped,
        Self::FromWire,
        Self::FromTunnel,
        Self::FromVlan,
        Self::FromTrunk,
        Self::ToTrunk,
        Self::FromUplink,
        Self::ToUplink,
        Self::GuardFrom,
        Self::GuardTo,
    ];

    /// Those of open ports and bridges, which every node needs.
    pub const OF_NODES: [Self; 3] = [Self::FromContainer, Self::ToContainer, Self::FromHost];

    /// Those of host ports and of masquerading: by far the longest for the verifier.
    pub const OF_HOST_PORTS: [Self; 2] = [Self::FromMapped, Self::FromWire];

    /// Those of VLAN interfaces.
    pub const OF_VLANS: [Self; 3] = [Self::FromVlan, Self::FromTrunk, Self::ToTrunk];

    /// Those of a bridge's uplink.
    pub const OF_UPLINKS: [Self; 2] = [Self::FromUplink, Self::ToUplink];

    /// Those of a container's port.
    pub const OF_PORTS: [Self; 2] = [Self::FromContainer, Self::ToContainer];

    /// Those behind them, of a restricted one.
    pub const GUARDS: [Self; 2] = [Self::GuardFrom, Self::GuardTo];

    /// Those of a restricted port, both kinds.
    pub const OF_RESTRICTED: [Self; 4] =
        [Self::FromContainer, Self::ToContainer, Self::GuardFrom, Self::GuardTo];

    /// Its name in the object, in pins and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FromContainer => "from_container",
            Self::ToContainer => "to_container",
            Self::FromHost => "from_host",
            Self::FromMapped => "from_mapped",
            Self::FromWire => "from_wire",
            Self::FromTunnel => "from_tunnel",
            Self::FromVlan => "from_vlan",
            Self::FromTrunk => "from_trunk",
            Self::ToTrunk => "to_trunk",
            Self::FromUplink => "from_uplink",
            Self::ToUplink => "to_uplink",
            Self::GuardFrom => "guard_from",
            Self::GuardTo => "guard_to",
        }
    }

    /// The program of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }

    /// The direction that it is attached in, as seen from its interface.
    pub const fn direction(self) -> TcAttachType {
        match self {
            Self::FromContainer
            | Self::FromMapped
            | Self::FromWire
            | Self::FromTunnel
            | Self::FromVlan
            | Self::FromTrunk
            | Self::FromUplink
            | Self::GuardFrom => TcAttachType::Ingress,
            Self::ToContainer | Self::FromHost | Self::ToTrunk | Self::ToUplink | Self::GuardTo => {
                TcAttachType::Egress
            }
        }
    }

    /// Those that run behind it on a port, whichever of them came first.
    pub const fn behind(self) -> &'static [Self] {
        match self {
            Self::FromContainer => &[Self::FromMapped, Self::GuardFrom],
            Self::FromMapped => &[Self::GuardFrom],
            Self::ToContainer => &[Self::GuardTo],
            _ => &[],
        }
    }
}

/// For which ports a program was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProgramSet {
    /// Ports without restrictions: what is not known is left to the kernel.
    #[default]
    Open,
    /// Ports with restrictions: without its entry in `PORTS` such a port is shut.
    Restricted,
    /// Ports in VLANs: shut likewise, and never left to the kernel's bridge.
    Members,
    /// VLAN interfaces and what they are joined to.
    Interfaces,
    /// Bridges' uplinks: shut as those are.
    Uplinks,
}

impl ProgramSet {
    /// Every set.
    pub const ALL: [Self; 5] = [Self::Open, Self::Restricted, Self::Members, Self::Interfaces, Self::Uplinks];
}

/// One program on one interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hook {
    /// What runs.
    pub program: Program,
    /// For which ports it was loaded.
    pub set: ProgramSet,
    /// Where.
    pub ifindex: u32,
    /// The interface's name, by which aya attaches.
    pub ifname: String,
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} ({})", self.program.name(), self.ifname, self.ifindex)
    }
}
