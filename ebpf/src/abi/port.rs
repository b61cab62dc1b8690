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

/// Value of `PORTS`: what the programs know of the interface that they run on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Port {
    /// The L2 domain: the ifindex of the kernel bridge that it is a port of.
    pub bridge: u32,
    /// Its place in `COUNTERS`.
    pub slot: u32,
    /// One of the `PATH_…` values. The one field that the programs write too.
    pub asks: u32,
    /// `PORT_…` bits.
    pub flags: u32,
    /// The VLAN of its untagged frames; 0 where the bridge knows no VLANs.
    pub vid: u16,
    /// The container's MAC address.
    pub mac: Mac,
}

/// [`Port::flags`]: reaches no other isolated port (the kernel's `BR_ISOLATED`).
pub const PORT_ISOLATED: u32 = 1;
/// [`Port::flags`]: may send from its own MAC address only.
pub const PORT_MAC_CHECK: u32 = 2;
/// [`Port::flags`]: somebody else's filters are on its host end too (a shaper's): what it sends has to meet them.
pub const PORT_SHARED: u32 = 4;
/// [`Port::flags`]: may send from its own IP addresses only.
pub const PORT_IP_CHECK: u32 = 8;
/// [`Port::flags`]: not a container's: somebody else has put this interface onto the bridge. No program runs on it.
pub const PORT_STRANGER: u32 = 16;
/// [`Port::flags`]: a stranger that leads out of the node (hardware, a bond, a tunnel), and isolated ports may reach.
pub const PORT_WIRE: u32 = 32;
/// [`Port::flags`]: what it sends is limited: its slot in `POLICERS` says how.
pub const PORT_POLICED: u32 = 64;
/// [`Port::flags`]: is in VLANs, and gets frames of [`vlan::DEFAULT_VID`] untagged beside those of its own untagged VLAN.
pub const PORT_DEFAULT_VLAN: u32 = 128;

/// [`Port::flags`]: host ports lead to it: `from_mapped` runs behind `from_container`, and what is sent to the node
/// may be an answer.
pub const PORT_MAPPED: u32 = 0x100;

/// [`Port::flags`]: what it sends to the world gets the node's address: `from_mapped` runs behind `from_container`, too.
pub const PORT_MASQUERADED: u32 = 0x2_0000;

/// [`Port::flags`]: nothing reaches it that came by another bridge of the node (`ingressPolicy: same-bridge`).
pub const PORT_SAME_BRIDGE: u32 = 0x200;
/// [`Port::flags`]: nothing reaches it from any container, and it reaches none (`ingressPolicy: isolated`). It has
/// [`PORT_SAME_BRIDGE`] too.
pub const PORT_ALONE: u32 = 0x400;
/// [`Port::flags`]: what it may flood is limited: its slots in `POLICERS` say how ([`policer::storm_slot`]).
pub const PORT_STORM: u32 = 0x800;
/// [`Port::flags`]: an uplink that its bridge's spanning tree, or an operator, keeps from forwarding.
pub const PORT_BLOCKED: u32 = 0x1000;
/// [`Port::flags`]: the host end of a VLAN interface whose parent is in the container as well: [`Port::bridge`] is the parent's
/// host end, which takes what is sent for its container's.
pub const PORT_WITHIN: u32 = 0x8000;

/// [`Port::flags`]: its limit is of some subnets only: `SUBNETS` says of which. It has [`PORT_POLICED`] too.
pub const PORT_SUBNETS: u32 = 0x1_0000;

/// [`Port::flags`]: it is restricted, and what its programs leave to the kernel bears a mark, without which nothing gets on
/// (see [`crate::stages::guard`]).
pub const PORT_GUARDED: u32 = 0x4_0000;

/// [`Port::asks`]: no flow of this port was ever the kernel's; nothing is looked up.
pub const PATH_FAST: u32 = 0;
/// [`Port::asks`]: some flows are the kernel's; each packet is looked up in `KERNEL_FLOWS`.
pub const PATH_ASK: u32 = 1;
/// [`Port::asks`]: programs were attached to a port that was in use. Until the agent has learned the kernel's flows,
/// an unknown flow is taken to be one of them.
pub const PATH_LEARN: u32 = 2;

const _: () = {
    assert!(size_of::<PortKey>() == 4);
    assert!(size_of::<Port>() == 24);
};
