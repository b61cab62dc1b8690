//! The maps' layout: what the agent writes and the kernel programs read, byte for byte.
//!
//! Every type is `repr(C)` with its padding spelled out, holds neither `bool` nor `Option` nor an enum, and has its
//! size asserted, so that both sides agree and a map's bytes can be compared. A change here raises [`ABI_VERSION`],
//! which names the pin directory: old maps keep serving their old programs until the agent has moved what they hold.
//!
//! MAC and IP addresses and L4 ports are in network order; everything else is in the host's.

pub mod fragment;
pub mod learning;
pub mod policer;
pub mod translation;
pub mod vlan;

use zerocopy::{Immutable, IntoBytes};

use crate::address::{Address, L4Port, Mac};

/// Names the pin directory (`<bpffs>/v1`).
pub const ABI_VERSION: u32 = 1;

/// `PORTS`: host veth ends by ifindex. Written by the agent; the programs write `asks` only. Gone with the link.
pub const MAX_PORTS: u32 = 16_384;

/// `FDB`: which station is behind which port. Written by the agent.
pub const MAX_STATIONS: u32 = 65_536;

/// `ADDRESSES`: the containers' own addresses. Written by the agent.
pub const MAX_ADDRESSES: u32 = 65_536;

/// `KERNEL_FLOWS`: flows that the kernel began. Written by both; least recently used go first.
pub const MAX_KERNEL_FLOWS: u32 = 131_072;

/// `COUNTERS`: one slot a port, plus [`NO_SLOT`].
pub const MAX_SLOTS: u32 = MAX_PORTS + 1;

/// `MAPPINGS`: the node's ports that lead to containers. Written by the agent.
pub const MAX_MAPPINGS: u32 = 16_384;

/// `LOCALS`: the node's own addresses. Written by the agent.
pub const MAX_LOCALS: u32 = 4_096;

/// `MASQUERADES`: the containers' addresses that are masqueraded. Written by the agent.
pub const MAX_MASQUERADES: u32 = 65_536;

/// `OUTLETS`: the interfaces by which masqueraded connections leave. Written by the agent.
pub const MAX_OUTLETS: u32 = 256;

/// `PEERS`: sockets of the node that were led to containers. Written by the programs; least recently used go first.
pub const MAX_PEERS: u32 = 32_768;

/// `FLOWS`: translated connections, two entries each, unless the agent makes it larger or smaller. Written by the programs, swept by the agent; least recently used
/// go first.
pub const MAX_FLOWS: u32 = 131_072;

/// `DROPS`: port × reason.
pub const MAX_DROPS: u32 = 16_384;

/// The counter slot of whoever has none of his own.
pub const NO_SLOT: u32 = 0;

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
/// (see [`crate::guard`]).
pub const PORT_GUARDED: u32 = 0x4_0000;

/// [`Port::asks`]: no flow of this port was ever the kernel's; nothing is looked up.
pub const PATH_FAST: u32 = 0;
/// [`Port::asks`]: some flows are the kernel's; each packet is looked up in `KERNEL_FLOWS`.
pub const PATH_ASK: u32 = 1;
/// [`Port::asks`]: programs were attached to a port that was in use. Until the agent has learned the kernel's flows,
/// an unknown flow is taken to be one of them.
pub const PATH_LEARN: u32 = 2;

/// Key of `FDB`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct StationKey {
    /// The L2 domain, as [`Port::bridge`].
    pub bridge: u32,
    /// VLAN id; 0 where the bridge knows no VLANs.
    pub vid: u16,
    /// The station's address.
    pub mac: Mac,
}

/// Value of `FDB`: how to reach a station. All that delivery needs, so that a packet costs one look-up here.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Station {
    /// The port behind which it is; for [`STATION_HOST`] the bridge device.
    pub ifindex: u32,
    /// That port's counters.
    pub slot: u32,
    /// The largest payload that it takes, in bytes without the Ethernet header.
    pub mtu: u32,
    /// `STATION_…` bits.
    pub flags: u32,
}

/// [`Station::flags`]: the node itself (the bridge's own address): the kernel's stack takes it.
pub const STATION_HOST: u32 = 1;
/// [`Station::flags`]: the peer is up in another namespace, so `bpf_redirect_peer` reaches it.
pub const STATION_PEER_UP: u32 = 2;
/// [`Station::flags`]: its port is isolated ([`PORT_ISOLATED`]).
pub const STATION_ISOLATED: u32 = 4;
/// [`Station::flags`]: its host end has a queueing discipline (a shaper's), through which packets have to go.
pub const STATION_QUEUED: u32 = 8;

/// [`Station::flags`]: its port has [`PORT_SAME_BRIDGE`].
pub const STATION_SAME_BRIDGE: u32 = 16;
/// [`Station::flags`]: its port has [`PORT_ALONE`].
pub const STATION_ALONE: u32 = 32;
/// [`Station::flags`]: no container, but beyond an uplink.
pub const STATION_WIRE: u32 = 64;

/// Key of `ADDRESSES`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct AddressKey {
    /// The L2 domain, as [`Port::bridge`].
    pub bridge: u32,
    /// The VLAN of it in which the address is used: that of its container's untagged frames; 0 where there are no VLANs. Two VLANs
    /// may use the same address.
    pub vid: u16,
    /// Zero.
    pub pad: [u8; 2],
    /// The address.
    pub address: Address,
}

impl AddressKey {
    /// An address that is used in the VLAN `vid` of a bridge; 0 where there are no VLANs.
    #[inline(always)]
    pub const fn new(bridge: u32, vid: u16, address: Address) -> Self {
        Self { bridge, vid, pad: [0; 2], address }
    }
}

/// Value of `ADDRESSES`: whose address it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Owner {
    /// The container's port.
    pub ifindex: u32,
}

/// Key of `KERNEL_FLOWS`. Both directions of a flow have the same key: the lower end comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct FlowKey {
    /// The L2 domain, as [`Port::bridge`].
    pub bridge: u32,
    /// Lower end's port; 0 where the protocol has none. ICMP echo puts its identifier in both.
    pub low_port: L4Port,
    /// Higher end's port.
    pub high_port: L4Port,
    /// Lower end's address.
    pub low: Address,
    /// Higher end's address.
    pub high: Address,
    /// IP protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: [u8; 3],
}

/// Value of `KERNEL_FLOWS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct KernelFlow {
    /// When it was noticed, in nanoseconds of `CLOCK_BOOTTIME`.
    pub noticed: u64,
}

/// Packets and bytes (Ethernet header included, a GSO packet counts once).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Value of `COUNTERS`, one per CPU: a port's traffic by direction and path.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct PortCounters {
    /// From the container, delivered by the fast path.
    pub from_fast: Count,
    /// From the container, left to the kernel.
    pub from_kernel: Count,
    /// From the container, dropped.
    pub from_dropped: Count,
    /// To the container, delivered by the fast path.
    pub to_fast: Count,
    /// To the container, by the kernel's way.
    pub to_kernel: Count,
    /// To the container, dropped.
    pub to_dropped: Count,
}

/// Key of `DROPS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct DropKey {
    /// The interface that the program ran on.
    pub ifindex: u32,
    /// `DropReason as u32`.
    pub reason: u32,
}

/// Value of the test build's `DECISIONS[0]`: what the last packet's journey came to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Decision {
    /// `Verdict::code`'s: 0 pass, 1 drop, 5 flooded, 8 dropped and told its sender, all else a way of delivery.
    pub verdict: u32,
    /// The interface that it goes to; 0 for pass and drop, the number of copies where it was flooded.
    pub target: u32,
    /// `PassReason` or `DropReason`; 0 where the packet itself goes on.
    pub reason: u32,
    /// Whether the packet was made this host's own (`PACKET_HOST`) before it was redirected.
    pub unicast: u32,
    /// The tag that the packet left with, and `1 << 16`; 0 for none.
    pub tag: u32,
    /// What the copies were: for each the sum of interface and tag, times its place from 1 on, all added up.
    pub copies: u32,
    /// How many packets have been decided since the map was made; tells a fresh decision from an old one.
    pub serial: u64,
}

const _: () = {
    assert!(size_of::<PortKey>() == 4);
    assert!(size_of::<Port>() == 24);
    assert!(size_of::<StationKey>() == 12);
    assert!(size_of::<Station>() == 16);
    assert!(size_of::<AddressKey>() == 24);
    assert!(size_of::<Owner>() == 4);
    assert!(size_of::<FlowKey>() == 44);
    assert!(size_of::<KernelFlow>() == 8);
    assert!(size_of::<Count>() == 16);
    assert!(size_of::<PortCounters>() == 96);
    assert!(size_of::<DropKey>() == 8);
    assert!(size_of::<Decision>() == 32);
};

/// Lets aya hand these to the kernel as plain bytes.
#[cfg(feature = "user")]
mod pod {
    use super::fragment::{FragmentKey, FragmentTranslation};
    use super::learning::{Learned, Learning};
    use super::policer::{Policer, SubnetKey};
    use super::translation::{
        Local, LocalKey, Mapping, MappingKey, Masquerade, Outlet, Peer, PeerKey, Translation, TupleKey,
    };
    use super::vlan::{Member, MemberKey, TaggedVlans};
    use super::*;

    macro_rules! pod {
        ($($name:ty),* $(,)?) => { $(
            // SAFETY: `repr(C)`, `Copy`, integers and byte arrays only; `IntoBytes` is not derived where there is hidden padding.
            unsafe impl aya::Pod for $name {}
        )* };
    }

    pod!(
        PortKey,
        Port,
        StationKey,
        Station,
        AddressKey,
        Owner,
        FlowKey,
        KernelFlow,
        Count,
        PortCounters,
        DropKey,
        Decision,
        LocalKey,
        Local,
        Policer,
        SubnetKey,
        MappingKey,
        Mapping,
        PeerKey,
        Peer,
        TupleKey,
        Translation,
        MemberKey,
        Member,
        TaggedVlans,
        Learned,
        Learning,
        FragmentKey,
        FragmentTranslation,
        Masquerade,
        Outlet,
    );
}
