//! What the elements of a set or map are made of.

/// What `nft` shows addresses, protocols and ports by (`TYPE_IPADDR`, `TYPE_IP6ADDR`, `TYPE_INET_PROTOCOL`, `TYPE_INET_SERVICE`, nftables/datatype.h).
const TYPE_IPADDR: u32 = 7;
const TYPE_IP6ADDR: u32 = 8;
const TYPE_PROTOCOL: u32 = 12;
const TYPE_PORT: u32 = 13;

/// What one value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An IPv4 address.
    V4,
    /// An IPv6 address.
    V6,
    /// An IP protocol number.
    Protocol,
    /// A port.
    Port,
}

impl Kind {
    /// An address of a family.
    pub(super) const fn address(is_v4: bool) -> Self {
        if is_v4 { Self::V4 } else { Self::V6 }
    }

    pub(super) const fn number(self) -> u32 {
        match self {
            Self::V4 => TYPE_IPADDR,
            Self::V6 => TYPE_IP6ADDR,
            Self::Protocol => TYPE_PROTOCOL,
            Self::Port => TYPE_PORT,
        }
    }

    /// Its bytes in a register: whole words.
    pub(super) const fn length(self) -> u32 {
        if matches!(self, Self::V6) { 16 } else { 4 }
    }
}
