//! The maps of address translation: `LOCALS`, `MAPPINGS`, `CONNECTED_PEERS`, `PEERS`, `FLOWS`, `MASQUERADES`, `OUTLETS` and `SOURCES`.
//! `docs/dataplane/nat.md` says what they are for, `docs/architecture.md` who writes them.

use zerocopy::{FromBytes, Immutable, IntoBytes};

pub use super::connection::{Direction, Shown};

use super::flow::FlowKey;
use crate::wire::address::{Address, L4Port, Mac};

/// Key of `LOCALS`, behind its bits: a prefix of addresses that are the node's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct LocalKey {
    /// The prefix; IPv4 mapped.
    pub address: Address,
}

/// Bits of [`LocalKey`]: those of one address.
pub const LOCAL_BITS: u32 = 128;

/// Value of `LOCALS`: empty.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Local {
    /// Zero.
    pub pad: u32,
}

/// Key of `MAPPINGS`: a host port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct MappingKey {
    /// The node's address; the unspecified one (`::`, or `0.0.0.0` mapped) stands for any of its family.
    pub address: Address,
    /// The node's port.
    pub port: L4Port,
    /// IP protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: u8,
}

/// Value of `MAPPINGS`: the host port's container.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Mapping {
    /// Its IPv4 address, mapped; all zeros where it has none.
    pub v4: Address,
    /// Its IPv6 address; all zeros where it has none.
    pub v6: Address,
    /// The L2 domain, as [`super::Port::bridge`].
    pub bridge: u32,
    /// The mapping's slot in `COUNTERS`.
    pub slot: u32,
    /// The container's VLAN; 0 where the bridge knows none.
    pub vid: u16,
    /// The container's MAC address.
    pub mac: Mac,
    /// The container's port.
    pub port: L4Port,
    /// `MAPPING_…` bits.
    pub flags: u16,
    /// Prefix lengths of its subnets: IPv4's, in the mapped form, then IPv6's. 0 where the node is not its gateway, so that replies do
    /// not come by the node.
    pub bits: [u8; 2],
    /// Zero.
    pub pad: [u8; 2],
}

impl Mapping {
    /// Whether an address is on the container's link, so that replies do not come by the node.
    #[inline(always)]
    pub const fn is_on_link(&self, address: Address) -> bool {
        let [v4, v6] = self.bits;
        let (own, bits) = if address.is_v4() { (self.v4, v4) } else { (self.v6, v6) };
        bits == 0 || own.shares(address, bits)
    }

    /// Whether the host port leads where a packet to it goes as `becomes`.
    #[inline(always)]
    pub const fn leads_as(&self, becomes: &TupleKey) -> bool {
        let container = if becomes.destination.is_v4() { self.v4 } else { self.v6 };
        self.bridge == becomes.domain
            && self.port.half() == becomes.destination_port.half()
            && container.is(becomes.destination)
    }
}

/// [`Mapping::flags`]: the container sees the node's address for every client.
pub const MAPPING_MASQUERADED: u16 = 1;
/// [`Mapping::flags`]: the container sees its clients' own addresses, its neighbours' too. It has [`super::PORT_ANSWERS_NEIGHBORS`].
pub const MAPPING_SOURCE_KEPT: u16 = 2;

/// [`Mapping::flags`]: others' rules are asked who may use it, so the kernel opens its connections, and carries them.
pub const MAPPING_HEEDED: u16 = 4;

/// Key of `CONNECTED_PEERS` and `PEERS`: a socket of the node, and the container that it was redirected to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerKey {
    /// The socket's cookie, which is never used again.
    pub socket: u64,
    /// The container's address.
    pub address: Address,
    /// The container's port.
    pub port: L4Port,
    /// Zero.
    pub pad: [u8; 6],
}

/// Value of `CONNECTED_PEERS` and `PEERS`: the address that the socket asked for, and that is reported to it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The node's address.
    pub address: Address,
    /// The node's port.
    pub port: L4Port,
    /// Zero.
    pub pad: [u8; 2],
}

/// Key of `ASSURED`, `FLOWS`, `CLAIMS` and `OWN_CLAIMS`: one direction of a translated connection, as its packets come in.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, FromBytes, Immutable, IntoBytes,
)]
pub struct TupleKey {
    /// The L2 domain that it comes from, as two bridges may have the same addresses; 0 for outside.
    pub domain: u32,
    /// The source port; of an ICMP echo request its identifier, of a reply 0.
    pub source_port: L4Port,
    /// The destination port; of an echo the reverse.
    pub destination_port: L4Port,
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: Address,
    /// IP protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: [u8; 3],
}

impl TupleKey {
    /// The direction of a flow whose packets come from `source`.
    #[inline(always)]
    #[must_use]
    pub const fn of(flow: &FlowKey, source: Address) -> Self {
        let upwards = Self {
            domain: flow.bridge,
            source_port: flow.low_port,
            destination_port: flow.high_port,
            source: flow.low,
            destination: flow.high,
            protocol: flow.protocol,
            pad: [0; 3],
        };
        if flow.low.is(source) { upwards } else { upwards.reversed(flow.bridge) }
    }

    /// The tuple of the reverse direction, from `domain`.
    #[inline(always)]
    #[must_use]
    pub const fn reversed(self, domain: u32) -> Self {
        Self {
            domain,
            source_port: self.destination_port,
            destination_port: self.source_port,
            source: self.destination,
            destination: self.source,
            ..self
        }
    }

    /// Whether both are the same tuple. Spelled out, as [`Address::is`] is.
    #[inline(always)]
    pub const fn is(self, other: Self) -> bool {
        let ports = (self.source_port.half() ^ other.source_port.half())
            | (self.destination_port.half() ^ other.destination_port.half());
        self.domain == other.domain
            && ports == 0
            && self.protocol == other.protocol
            && self.source.is(other.source)
            && self.destination.is(other.destination)
    }
}

/// Value of `ASSURED` and `FLOWS`: the translation of this direction, and its state. The other direction's key is [`Translation::becomes`] reversed, so
/// either finds the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
pub struct Translation {
    /// The tuple after translation; `domain` is where the packet goes.
    pub becomes: TupleKey,
    /// [`Shown`]. Written by this direction's packets only.
    pub shown: u32,
    /// When the last packet of this direction came, in nanoseconds of `CLOCK_BOOTTIME`. Written as `shown` is.
    pub touched: u64,
    /// When the connection began, by the same clock. The same in both entries, so that a leftover half is never taken for another
    /// connection's.
    pub begun: u64,
    /// How many packets of this direction came. Written as `shown` is.
    pub packets: u64,
    /// How many bytes they had, Ethernet headers included.
    pub bytes: u64,
    /// Of a masqueraded connection, the host end of its container's veth, as the address may be another container's by now; [`NODE`] of the
    /// node's own. 0 for a host port's connection; [`TRACKED`] and [`TRACKED_MASQUERADED`] for those that the kernel has opened.
    pub holder: u32,
    /// `TRANSLATION_…` bits.
    pub flags: u32,
    /// The acknowledgment number of its last TCP segment, in the host's order. Written as `shown` is.
    pub acknowledged: u32,
    /// The sequence number behind its FIN, in the host's order; means nothing before [`Shown::FINISHED`]. Written as `shown` is.
    pub end: u32,
}

/// [`TupleKey::domain`] of packets from outside the node.
pub const OUTSIDE: u32 = 0;

/// [`TupleKey::domain`] of what the node's own stack sends and gets, and [`Translation::holder`] of its connections: no interface's index.
pub const NODE: u32 = u32::MAX;

/// [`Translation::holder`] of a host port's connection that the kernel has opened, and that connection tracking translates as well: no interface's
/// index. The agent writes such entries, by what connection tracking says.
pub const TRACKED: u32 = u32::MAX - 1;

/// The same of a connection that a container has begun, and that the kernel masquerades.
pub const TRACKED_MASQUERADED: u32 = u32::MAX - 2;

/// Whether a connection with this holder was opened by the kernel.
#[inline(always)]
pub const fn is_tracked(holder: u32) -> bool {
    matches!(holder, TRACKED | TRACKED_MASQUERADED)
}

/// [`Translation::flags`]: the opener's direction.
pub const TRANSLATION_OPENER: u32 = 1;
/// [`Translation::flags`]: its opener came by the container's own bridge: the container may answer it directly.
pub const TRANSLATION_NEAR: u32 = 2;
/// [`Translation::flags`]: from this bit on who has opened it ([`super::share::Side`]), two bits.
pub const TRANSLATION_SIDE: u32 = 2;
/// [`Translation::flags`]: from this bit on its container's counter slot, or [`super::NO_SLOT`].
pub const TRANSLATION_SLOT: u32 = 16;

/// [`Translation::flags`] of a connection that `side` has opened, of the container with the counter slot `slot`.
#[inline(always)]
pub const fn opened_by(side: super::share::Side, slot: u32) -> u32 {
    (side as u32) << TRANSLATION_SIDE | slot << TRANSLATION_SLOT
}

const _: () = assert!(super::MAX_SLOTS <= 1 << (u32::BITS - TRANSLATION_SLOT));

/// Value of `MASQUERADES`, whose key is a container's masqueraded address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Masquerade {
    /// The mask of its network, within which it is not masqueraded; for IPv4 in the mapped form.
    pub mask: Address,
    /// The host end of its container's veth.
    pub ifindex: u32,
}

impl Masquerade {
    /// Whether both are in the network.
    #[inline(always)]
    pub const fn is_within(&self, one: Address, other: Address) -> bool {
        let ([a, b, c, d], [e, f, g, h], [k, l, m, n]) = (one.words(), other.words(), self.mask.words());
        (a ^ e) & k | (b ^ f) & l | (c ^ g) & m | (d ^ h) & n == 0
    }
}

/// Value of `OUTLETS`: an address of the node by which masqueraded connections leave. Its key is an [`super::AddressKey`] with the
/// interface's ifindex as its bridge, and no VLAN.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Outlet {
    /// The first port of `ip_local_port_range`, which the node's own sockets get.
    pub low: u16,
    /// The last of them.
    pub high: u16,
    /// A secret seed, so that ports cannot be predicted (RFC 6056 section 3.3).
    pub seed: u32,
}

/// Data of a key of `SOURCES`, a trie in which the longest prefix counts: what leaves by an interface, by where it goes. The value is the
/// address that the kernel's MASQUERADE would choose. Written by the agent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct SourceKey {
    /// The interface's ifindex.
    pub ifindex: u32,
    /// The next hop (IPv4, as `inet_select_addr` has it) or the destination (IPv6, RFC 6724).
    pub address: Address,
}

/// Bits of the interface alone.
pub const INTERFACE_BITS: u32 = 32;
/// Bits of the interface and a whole address.
pub const SOURCE_BITS: u32 = INTERFACE_BITS + 128;

const _: () = {
    assert!(size_of::<Masquerade>() == 20);
    assert!(size_of::<Outlet>() == 8);
    assert!(size_of::<SourceKey>() == 20);
    assert!(size_of::<LocalKey>() == 16);
    assert!(size_of::<Local>() == 4);
    assert!(size_of::<MappingKey>() == 20);
    assert!(size_of::<Mapping>() == 56);
    assert!(size_of::<PeerKey>() == 32);
    assert!(size_of::<Peer>() == 20);
    assert!(size_of::<TupleKey>() == 44);
    assert!(size_of::<Translation>() == 96);
};
