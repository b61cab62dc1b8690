//! A hook: one program on one interface.

use std::fmt;

use aya::programs::TcAttachType;

/// The programs, named from the packet's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// Packets from a container: tc ingress of its host veth end.
    FromContainer,
    /// Packets to a container on the kernel's path: tc egress of its host veth end.
    ToContainer,
    /// Packets from the node into a bridge: tc egress of the bridge device.
    FromHost,
    /// Packets from a container with host ports to the node: tc ingress of its host veth end, behind
    /// [`Program::FromContainer`].
    FromMapped,
    /// Packets from outside: tc ingress of an uplink.
    FromWire,
    /// The same, for an uplink without Ethernet headers.
    FromTunnel,
    /// Packets to outside by the kernel's way: tc egress of an uplink.
    ToWire,
    /// The same, for an uplink without Ethernet headers.
    ToTunnel,
    /// Packets from a container's VLAN interface: tc ingress of its host veth end.
    FromVlan,
    /// Packets from the master of a VLAN interface: tc ingress of the master.
    FromTrunk,
    /// Packets to a container whose interface has VLAN interfaces: tc egress of its host veth end.
    ToTrunk,
    /// Packets from a bridge's uplink: tc ingress of the uplink.
    FromUplink,
    /// Packets to a bridge's uplink: tc egress of the uplink.
    ToUplink,
    /// Drops packets of a restricted port that [`Program::FromContainer`] has not judged: behind all other
    /// programs.
    GuardFrom,
    /// The same of [`Program::ToContainer`].
    GuardTo,
}

impl Program {
    /// Every program.
    pub const ALL: [Self; 15] = [
        Self::FromContainer,
        Self::ToContainer,
        Self::FromHost,
        Self::FromMapped,
        Self::FromWire,
        Self::FromTunnel,
        Self::ToWire,
        Self::ToTunnel,
        Self::FromVlan,
        Self::FromTrunk,
        Self::ToTrunk,
        Self::FromUplink,
        Self::ToUplink,
        Self::GuardFrom,
        Self::GuardTo,
    ];

    /// The programs of open ports and bridges, which every node needs.
    pub const OF_NODES: [Self; 3] = [Self::FromContainer, Self::ToContainer, Self::FromHost];

    /// The programs of host ports and masquerading: by far the longest to verify.
    pub const OF_HOST_PORTS: [Self; 3] = [Self::FromMapped, Self::FromWire, Self::ToWire];

    /// The programs of VLAN interfaces.
    pub const OF_VLANS: [Self; 3] = [Self::FromVlan, Self::FromTrunk, Self::ToTrunk];

    /// The programs of a bridge's uplink.
    pub const OF_UPLINKS: [Self; 2] = [Self::FromUplink, Self::ToUplink];

    /// The programs of a container's port.
    pub const OF_PORTS: [Self; 2] = [Self::FromContainer, Self::ToContainer];

    /// The guards behind them, on restricted ports.
    pub const GUARDS: [Self; 2] = [Self::GuardFrom, Self::GuardTo];

    /// Every program that a container's host end may have, in the order in which they are attached.
    pub const OF_CONTAINERS: [Self; 6] = [
        Self::FromContainer,
        Self::ToContainer,
        Self::FromMapped,
        Self::FromVlan,
        Self::GuardFrom,
        Self::GuardTo,
    ];

    /// All programs of a restricted port.
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
            Self::ToWire => "to_wire",
            Self::ToTunnel => "to_tunnel",
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
            Self::ToContainer
            | Self::FromHost
            | Self::ToWire
            | Self::ToTunnel
            | Self::ToTrunk
            | Self::ToUplink
            | Self::GuardTo => TcAttachType::Egress,
        }
    }

    /// The programs that run behind it on a port, in whichever order they are attached.
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
    /// Ports without restrictions: unknown packets are left to the kernel.
    #[default]
    Open,
    /// Ports with restrictions: without its entry in `PORTS` such a port drops everything.
    Restricted,
    /// Ports in VLANs: these fail closed, too, and never use the kernel's bridge.
    Members,
    /// VLAN interfaces and their masters.
    Interfaces,
    /// Bridges' uplinks: these fail closed, too.
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

impl Hook {
    /// One whose set is the open one, or does not matter: whoever looks for a program or takes it away does not ask for which ports it was
    /// loaded.
    pub const fn open(program: Program, ifindex: u32, ifname: String) -> Self {
        Self { program, set: ProgramSet::Open, ifindex, ifname }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} ({})", self.program.name(), self.ifname, self.ifindex)
    }
}
