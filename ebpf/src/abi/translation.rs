//! The layout of the NAT maps. `docs/dataplane/nat.md` says what they are for, `docs/architecture.md` who writes them.

use zerocopy::{Immutable, IntoBytes};

use crate::wire::address::{Address, L4Port, Mac};

/// Key of `LOCALS`: an address of the node that host ports are at.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct LocalKey {
    /// The address.
    pub address: Address,
}

/// Value of `LOCALS`: there is nothing to say but that it is there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Local {
    /// Zero.
    pub pad: u32,
}

/// Key of `MAPPINGS`: what a packet from outside, or from the node itself, asks for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct MappingKey {
    /// The node's address; nobody's of a family (`::`, or `0.0.0.0` mapped): any that the node has of that.
    pub address: Address,
    /// The node's port.
    pub port: L4Port,
    /// IP protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: u8,
}

/// Value of `MAPPINGS`: the container that answers, and how its packets are framed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Mapping {
    /// Its IPv4 address, mapped; all zeros where it has none.
    pub v4: Address,
    /// Its IPv6 address; all zeros where it has none.
    pub v6: Address,
    /// The L2 domain, as [`super::Port::bridge`].
    pub bridge: u32,
    /// The mapping's place in `COUNTERS`.
    pub slot: u32,
    /// The container's VLAN; 0 where the bridge knows none.
    pub vid: u16,
    /// The container's MAC address.
    pub mac: Mac,
    /// The container's port.
    pub port: L4Port,
    /// `MAPPING_…` bits.
    pub flags: u16,
    /// How many bits of its address are its subnet's: of IPv4, in the mapped form, then of IPv6. 0 where the node is not its
    /// gateway, so that no answer comes by the node.
    pub bits: [u8; 2],
    /// Zero.
    pub pad: [u8; 2],
}

impl Mapping {
    /// Whether the container takes an address for a neighbor's, which it answers without the node.
    #[inline(always)]
    pub const fn is_on_link(&self, address: Address) -> bool {
        let [v4, v6] = self.bits;
        let (own, bits) = if address.is_v4() { (self.v4, v4) } else { (self.v6, v6) };
        bits == 0 || own.shares(address, bits)
    }
}

/// [`Mapping::flags`]: whoever comes by it, the container sees the node.
pub const MAPPING_MASQUERADED: u16 = 1;

/// Key of `PEERS`: a socket of the node's, and to whom it was led.
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

/// Value of `PEERS`: whom the socket asked for, and is to be told of.
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

/// Key of `FLOWS`: one direction of a translated connection, as its packets come in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct TupleKey {
    /// The L2 domain that it comes from, for two bridges may have the same addresses; 0: from outside.
    pub domain: u32,
    /// From which port; an ICMP echo's identifier in its request, and 0 in its reply.
    pub source_port: L4Port,
    /// To which port; of an echo the other way round.
    pub destination_port: L4Port,
    /// From whom.
    pub source: Address,
    /// To whom.
    pub destination: Address,
    /// IP protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: [u8; 3],
}

impl TupleKey {
    /// The tuple of what comes back from `domain`.
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

    /// Whether both are one tuple. Spelled out, as [`Address::is`] is.
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

/// Value of `FLOWS`: what a packet of this direction becomes, and what its direction has shown. The other direction's
/// key is [`Translation::becomes`] reversed, so either finds the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Translation {
    /// The tuple of the packet as it leaves; `domain` is where to.
    pub becomes: TupleKey,
    /// `translate::connection::Shown`. Written by this direction's packets only.
    pub shown: u32,
    /// When the last packet of this direction came, in nanoseconds of `CLOCK_BOOTTIME`. Written as `shown` is.
    pub touched: u64,
    /// When the connection began, by the same clock. Both of its entries have the same: so a half that was left over is
    /// never taken for another connection's.
    pub begun: u64,
    /// How many packets of this direction came. Written as `shown` is.
    pub packets: u64,
    /// How many bytes they had, Ethernet headers included.
    pub bytes: u64,
    /// Of a masqueraded connection, the host end of its container's veth: an address may be the next container's by now. 0 of
    /// one that came by a port of the node.
    pub holder: u32,
    /// `TRANSLATION_…` bits.
    pub flags: u32,
}

/// [`Translation::flags`]: this is the direction of the one who opened the connection.
pub const TRANSLATION_OPENER: u32 = 1;

/// Value of `MASQUERADES`, whose key is an address of a container that becomes the node's on its way out.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Masquerade {
    /// The bits that it shares with the rest of its network, where it stays what it is: those of an IPv4 address as if mapped.
    pub mask: Address,
    /// The host end of its container's veth.
    pub ifindex: u32,
}

impl Masquerade {
    /// Whether both are of the one network.
    #[inline(always)]
    pub const fn is_within(&self, one: Address, other: Address) -> bool {
        let ([a, b, c, d], [e, f, g, h], [k, l, m, n]) = (one.words(), other.words(), self.mask.words());
        (a ^ e) & k | (b ^ f) & l | (c ^ g) & m | (d ^ h) & n == 0
    }
}

/// Value of `OUTLETS`: an interface that masqueraded connections leave the node by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Outlet {
    /// The one IPv4 address that they are given; all zeros where none begins, or it is not clear which.
    pub v4: Address,
    /// The same of IPv6.
    pub v6: Address,
    /// The first of the ports that the node gives its own sockets (`ip_local_port_range`).
    pub low: u16,
    /// The last of them.
    pub high: u16,
    /// What nobody outside can guess, so that nobody guesses which port comes next (RFC 6056 section 3.3).
    pub seed: u32,
}

impl Outlet {
    /// The address of the same family as `like`.
    #[inline(always)]
    pub const fn address(&self, like: Address) -> Address {
        if like.is_v4() { self.v4 } else { self.v6 }
    }
}

const _: () = {
    assert!(size_of::<Masquerade>() == 20);
    assert!(size_of::<Outlet>() == 40);
    assert!(size_of::<LocalKey>() == 16);
    assert!(size_of::<Local>() == 4);
    assert!(size_of::<MappingKey>() == 20);
    assert!(size_of::<Mapping>() == 56);
    assert!(size_of::<PeerKey>() == 32);
    assert!(size_of::<Peer>() == 20);
    assert!(size_of::<TupleKey>() == 44);
    assert!(size_of::<Translation>() == 88);
};
