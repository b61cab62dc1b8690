//! Addresses and ports in network order, and all arithmetic on them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use super::mac::{Mac, Macs};

/// An IPv6 address, or an IPv4 one mapped into it (`::ffff:a.b.c.d`, RFC 4291 section 2.5.5.2). Kept in words, as
/// [`Mac`] is.
#[repr(transparent)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, FromBytes, Immutable, IntoBytes,
)]
pub struct Address([u32; 4]);

impl Address {
    /// The IPv6 address with these half words, each in network order.
    #[inline(always)]
    pub const fn from_v6([a, b, c, d, e, f, g, h]: [u16; 8]) -> Self {
        Self([join(a, b), join(c, d), join(e, f), join(g, h)])
    }

    /// The address with these half words that an IPv6 packet has. None for a mapped one: it means an IPv4 address here, and nobody's in an
    /// IPv6 packet (draft-itojun-v6ops-v4mapped-harmful; `ip6_rcv_core` refuses it as a source).
    #[inline(always)]
    pub const fn in_v6_packet(halves: [u16; 8]) -> Option<Self> {
        let address = Self::from_v6(halves);
        if address.is_v4() { None } else { Some(address) }
    }

    /// The IPv4 address with these half words, each in network order, mapped.
    #[inline(always)]
    pub const fn from_v4([a, b]: [u16; 2]) -> Self {
        Self([0, 0, u32::from_ne_bytes([0, 0, 0xff, 0xff]), join(a, b)])
    }

    /// The IPv6 address with these words, as they stand in memory.
    #[inline(always)]
    pub const fn from_v6_words(words: [u32; 4]) -> Self {
        Self(words)
    }

    /// The IPv4 address with this word, as it stands in memory, mapped.
    #[inline(always)]
    pub const fn from_v4_word(word: u32) -> Self {
        Self([0, 0, u32::from_ne_bytes([0, 0, 0xff, 0xff]), word])
    }

    /// As [`Address::from_v6`] takes it.
    #[inline(always)]
    pub const fn v6(self) -> [u16; 8] {
        let ([a, b], [c, d], [e, f], [g, h]) =
            (split(self.0[0]), split(self.0[1]), split(self.0[2]), split(self.0[3]));
        [a, b, c, d, e, f, g, h]
    }

    /// As [`Address::from_v4`] takes it.
    #[inline(always)]
    pub const fn v4(self) -> [u16; 2] {
        split(self.0[3])
    }

    /// Whether it is a loopback address: `127.0.0.0/8`, mapped, or `::1`.
    #[inline(always)]
    pub const fn is_loopback(self) -> bool {
        const LAST: u32 = u32::from_ne_bytes([0, 0, 0, 1]);
        let [first, _, _, _] = self.0[3].to_ne_bytes();
        let is_v6 = self.0[0] | self.0[1] | self.0[2] | (self.0[3] ^ LAST) == 0;
        is_v6 || (self.is_v4() && first == 127)
    }

    /// The address that the kernel connects to instead: for an unspecified address the loopback of its family.
    #[inline(always)]
    #[must_use]
    pub const fn or_loopback(self) -> Self {
        if self.0[3] != 0 {
            return self;
        }
        if self.is_v4() {
            return Self::from_v4_word(u32::from_ne_bytes([127, 0, 0, 1]));
        }
        if self.is_unspecified() { Self([0, 0, 0, u32::from_ne_bytes([0, 0, 0, 1])]) } else { self }
    }

    /// Whether it is an IPv4 one, mapped.
    #[inline(always)]
    pub const fn is_v4(self) -> bool {
        self.0[0] | self.0[1] | (self.0[2] ^ u32::from_ne_bytes([0, 0, 0xff, 0xff])) == 0
    }

    /// Its bytes.
    pub fn octets(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (part, word) in bytes.chunks_exact_mut(4).zip(self.0) {
            part.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Its words as they stand in memory.
    #[inline(always)]
    pub const fn words(self) -> [u32; 4] {
        self.0
    }

    /// Whether it sorts before `other`, in an arbitrary order that makes the two directions of a flow one key.
    #[inline(always)]
    pub const fn is_before(self, other: Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        // The last word first: it is where addresses on one link differ.
        if d != h {
            return d < h;
        }
        if c != g {
            return c < g;
        }
        if b != f {
            return b < f;
        }
        a < e
    }

    /// Whether it is unspecified: `::` or `0.0.0.0`.
    #[inline(always)]
    pub const fn is_unspecified(self) -> bool {
        self.is(Self([0; 4])) || self.is(Self::from_v4([0; 2]))
    }

    /// Nobody's address of its family.
    #[inline(always)]
    #[must_use]
    pub const fn unspecified(self) -> Self {
        if self.is_v4() { Self::from_v4([0; 2]) } else { Self([0; 4]) }
    }

    /// Whether it is a group's (RFC 1112 section 4, RFC 4291 section 2.7).
    #[inline(always)]
    pub const fn is_group(self) -> bool {
        if self.is_v4() {
            let [first, _, _, _] = self.0[3].to_ne_bytes();
            return first & 0xf0 == 0xe0;
        }
        let [first, _, _, _] = self.0[0].to_ne_bytes();
        first == 0xff
    }

    /// Whether an ICMP error may be sent there: to a single host's address, neither unspecified, group, broadcast, reserved nor loopback
    /// (RFC 1122 section 3.2.2, RFC 4443 section 2.4).
    #[inline(always)]
    pub const fn is_error_destination(self) -> bool {
        let [first, _, _, _] = self.0[3].to_ne_bytes();
        let is_reserved = self.is_v4() && first & 0xf0 == 0xf0;
        !(self.is_unspecified() || self.is_loopback() || self.is_group() || is_reserved)
    }

    /// Whether no single host has it: unspecified, loopback, a group's; of IPv4 also `0.0.0.0/8` and the broadcast address.
    #[inline(always)]
    pub const fn is_nobodys(self) -> bool {
        let [first, _, _, _] = self.0[3].to_ne_bytes();
        let is_broadcast_or_this = self.is_v4() && (first == 0 || self.0[3] == u32::MAX);
        self.is_unspecified() || self.is_loopback() || self.is_group() || is_broadcast_or_this
    }

    /// Whether it holds on one link only (`fe80::/10`, RFC 4291 section 2.4).
    #[inline(always)]
    pub const fn is_link_local(self) -> bool {
        let [first, second, _, _] = self.0[0].to_ne_bytes();
        first == 0xfe && second & 0xc0 == 0x80
    }

    /// The link-local address of a station with a MAC address (RFC 4291, appendix A).
    #[inline(always)]
    pub const fn link_local_of(mac: Mac) -> Self {
        let [a, b, c, d, e, f] = mac.octets();
        Self([
            u32::from_ne_bytes([0xfe, 0x80, 0, 0]),
            0,
            u32::from_ne_bytes([a ^ 2, b, c, 0xff]),
            u32::from_ne_bytes([0xfe, d, e, f]),
        ])
    }

    /// Whether its lower half is made of a MAC address, as that of [`Address::link_local_of`].
    #[inline(always)]
    pub const fn is_of_mac(self) -> bool {
        const LEFT: u32 = u32::from_ne_bytes([0, 0, 0, 0xff]);
        const RIGHT: u32 = u32::from_ne_bytes([0xff, 0, 0, 0]);
        const FE: u32 = u32::from_ne_bytes([0xfe, 0, 0, 0]);
        self.0[2] & LEFT == LEFT && self.0[3] & RIGHT == FE
    }

    /// Whether the first `bits` of both are the same. Of an IPv4 address the mapped form counts: 96 more.
    #[inline(always)]
    pub const fn shares(self, other: Self, bits: u8) -> bool {
        let (mut differ, mut left, mut word) = (0, bits as u32, 0);
        while word < 4 {
            let here = if left < 32 { left } else { 32 };
            let mask = if here == 0 { 0 } else { u32::MAX << (32 - here) };
            differ |= (self.0[word] ^ other.0[word]) & mask.to_be();
            left -= here;
            word += 1;
        }
        differ == 0
    }

    /// Whether both are the same address. Spelled out: comparing arrays may call `memcmp`, which BPF lacks.
    #[inline(always)]
    pub const fn is(self, other: Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }
}

/// Two half words as the word that they are in memory.
#[inline(always)]
const fn join(first: u16, second: u16) -> u32 {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

/// The half words of a word as it is in memory.
#[inline(always)]
const fn split(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_ne_bytes();
    [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]
}

impl From<core::net::IpAddr> for Address {
    fn from(address: core::net::IpAddr) -> Self {
        let v6 = match address {
            core::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            core::net::IpAddr::V6(v6) => v6,
        };
        Self::from_v6(v6.segments().map(u16::to_be))
    }
}

impl From<Address> for core::net::IpAddr {
    fn from(address: Address) -> Self {
        Self::from(address.octets()).to_canonical()
    }
}

/// A TCP, UDP or SCTP port, or an ICMP echo identifier.
#[repr(transparent)]
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
pub struct L4Port(u16);

impl L4Port {
    /// Its number.
    #[inline(always)]
    pub const fn number(self) -> u16 {
        u16::from_be(self.0)
    }

    /// Its half word as it stands in memory.
    #[inline(always)]
    pub const fn half(self) -> u16 {
        self.0
    }

    /// The port with this half word, as it stands in memory.
    #[inline(always)]
    pub const fn from_half(half: u16) -> Self {
        Self(half)
    }
}

impl From<u16> for L4Port {
    fn from(number: u16) -> Self {
        Self(number.to_be())
    }
}
