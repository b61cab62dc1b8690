//! `PORTS`: the interfaces that programs run on.

use zerocopy::{Immutable, IntoBytes};

use crate::wire::address::Mac;

/// Key of `PORTS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct PortKey {
    /// The host veth end's (or the bridge device's, for `from_host`) ifindex.
    pub ifindex: u32,
}

/// Value of `PORTS`: an interface that programs run on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Port {
    /// The L2 domain: the ifindex of the kernel bridge that it is a port of.
    pub bridge: u32,
    /// Its slot in `COUNTERS`.
    pub slot: u32,
    /// Whether flows are looked up: an `AFFINITY_…` value. The programs write this field only.
    pub affinity: u32,
    /// `PORT_…` bits.
    pub flags: u32,
    /// The VLAN of its untagged frames; 0 where the bridge knows no VLANs.
    pub vid: u16,
    /// The container's MAC address.
    pub mac: Mac,
}

/// Value of `HANDED_ON`, one for each CPU: what `from_container` hands to `from_mapped`, which runs right behind it on the same packet.
/// Nothing of a packet's own says that: a container's programs could write it. Where somebody else's program between the two ends a
/// packet's way, the port's next packet on this CPU that is not handed on is taken for one that was, with the entry of then; the
/// agent empties it at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct HandedOn {
    /// The port whose packet is for the node; 0 for none, and once it has been taken.
    pub ifindex: u32,
    /// Its entry.
    pub port: Port,
}

/// [`Port::flags`]: reaches no other isolated port (the kernel's `BR_ISOLATED`).
pub const PORT_ISOLATED: u32 = 1;
/// [`Port::flags`]: may send from its own MAC address only.
pub const PORT_MAC_CHECK: u32 = 2;
/// [`Port::flags`]: others have to see what it sends: programs that filter on its host end (a shaper's), or the kernel's bridge, on
/// which somebody has set the port so that it judges each frame.
pub const PORT_SHARED: u32 = 4;
/// [`Port::flags`]: may send from its own IP addresses only.
pub const PORT_IP_CHECK: u32 = 8;
/// [`Port::flags`]: a foreign port: the interface is not a container's, and none of our programs runs on it.
pub const PORT_FOREIGN: u32 = 16;
/// [`Port::flags`]: a foreign port that leads out of the node (hardware, a bond, a tunnel); isolated ports may reach it.
pub const PORT_WIRE: u32 = 32;
/// [`Port::flags`]: it has a rate: its slot in `POLICERS`.
pub const PORT_POLICED: u32 = 64;
/// [`Port::flags`]: it is in VLANs, and also gets frames of [`super::vlan::DEFAULT_VID`] untagged.
pub const PORT_DEFAULT_VLAN: u32 = 128;

/// [`Port::flags`]: it has host ports: `from_mapped` runs behind `from_container`, and what it sends to the node may be a reply. Of an
/// uplink: its bridge runs `from_wire`, and what it brings to the node is marked.
pub const PORT_MAPPED: u32 = 0x100;

/// [`Port::flags`]: it is masqueraded: `from_mapped` runs behind `from_container`.
pub const PORT_MASQUERADED: u32 = 0x2_0000;

/// [`Port::flags`]: `ingressPolicy: same-bridge`: takes nothing that came by another bridge of the node.
pub const PORT_SAME_BRIDGE: u32 = 0x200;
/// [`Port::flags`]: `ingressPolicy: isolated`: talks to no container. It has [`PORT_SAME_BRIDGE`] too.
pub const PORT_ALONE: u32 = 0x400;
/// [`Port::flags`]: it has a rate of flooded frames: its slots in `POLICERS` ([`super::policer::storm_slot`]).
pub const PORT_STORM: u32 = 0x800;
/// [`Port::flags`]: it does not forward, by its bridge's spanning tree or by an operator. A container's port has [`PORT_SHARED`] too.
pub const PORT_BLOCKED: u32 = 0x1000;
/// [`Port::flags`]: `trusted`: may send router advertisements, redirects and DHCP servers' messages despite [`PORT_IP_CHECK`].
pub const PORT_TRUSTED: u32 = 0x2000;
/// [`Port::flags`]: the host end of a VLAN interface whose parent is in the container too: [`Port::bridge`] is the parent's host
/// end.
pub const PORT_WITHIN: u32 = 0x8000;

/// [`Port::flags`]: its rate covers some subnets only (`SUBNETS`). It has [`PORT_POLICED`] too.
pub const PORT_SUBNETS: u32 = 0x1_0000;

/// [`Port::flags`]: it is restricted and guarded: what its programs pass has a mark (`stages::guard`).
pub const PORT_GUARDED: u32 = 0x4_0000;

/// [`Port::affinity`]: no flow of this port was ever the kernel's: no look-up.
pub const AFFINITY_FAST: u32 = 0;
/// [`Port::affinity`]: some flows are the kernel's, or translated: a look-up for each packet.
pub const AFFINITY_LOOKUP: u32 = 1;
/// [`Port::affinity`]: the programs were attached to a port in use. Until the agent has read the kernel's flows, unknown flows count as
/// the kernel's.
pub const AFFINITY_LEARN: u32 = 2;

/// [`Port::affinity`]: there was no room for a flow of its container's that is the kernel's: until the agent has made some, unknown
/// flows count as the kernel's. The programs set it, too.
pub const AFFINITY_APART: u32 = 3;

/// [`Port::flags`]: its container's end has an XDP program, which sees only what comes out of the host's end.
pub const PORT_XDP: u32 = 0x8_0000;

/// [`Port::flags`]: clients of its host ports may be neighbours that see its answers directly: what it sends to anybody is looked up among
/// the translated connections. It has [`AFFINITY_LOOKUP`], or more.
pub const PORT_ANSWERS_NEIGHBORS: u32 = 0x20_0000;

/// [`Port::flags`]: others have rules for what it is sent and sends to other ports: the kernel is asked for each flow, and again while it lasts
/// (`stages::accept`). It has [`AFFINITY_LOOKUP`], or more. Of a bridge: they have rules for what the node sends by it.
pub const PORT_HEEDED: u32 = 0x40_0000;

/// [`Port::flags`]: the programs carry what the kernel opens for it, by host ports or masqueraded: what it is sent from beyond the bridge is noted
/// (`nat::carry`).
pub const PORT_OPENED: u32 = 0x80_0000;

/// [`Port::flags`]: its station was heard at another port: what it sends next has to be heard. The programs write this bit.
pub const PORT_AWAY: u32 = 0x10_0000;

/// [`Port::flags`], of a container's port: nobody on its bridge had any of its addresses before it, asked for one, or has claimed one since.
/// What it announces of them is new to nobody (`stages::suppress`). The agent sets this bit with the entry, and the programs take it away.
pub const PORT_FRESH: u32 = 0x100_0000;

/// [`Port::flags`], of a bridge: all of its ports have been containers' with programs from its first one on, which have seen all that
/// was said to groups: needless frames to groups are suppressed (`stages::suppress`). The agent sets this bit with the entry, and takes it away.
pub const PORT_SPARING: u32 = 0x200_0000;
/// [`Port::flags`], of a bridge: somebody has asked who listens to which groups (MLD), and bridges may forward by the reports since. The programs
/// write this bit.
pub const PORT_QUERIED: u32 = 0x400_0000;
/// [`Port::flags`], of a bridge: a router has been heard on it, or one that listens as routers do. The programs write this bit.
pub const PORT_ROUTED: u32 = 0x800_0000;

/// [`Port::flags`]: those that change while the entry lasts, and are no part of what a port or bridge was given.
pub const PORT_PASSING: u32 = PORT_AWAY | PORT_FRESH | PORT_SPARING | PORT_QUERIED | PORT_ROUTED;

/// [`Port::flags`]: a checked port: it takes no other port's address, and no other port takes its.
pub const PORT_CHECKED: u32 = PORT_MAC_CHECK | PORT_IP_CHECK;

const _: () = {
    assert!(size_of::<PortKey>() == 4);
    assert!(size_of::<Port>() == 24);
    assert!(size_of::<HandedOn>() == 28);
};
