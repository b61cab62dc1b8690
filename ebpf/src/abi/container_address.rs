//! `ADDRESSES`: the containers' own addresses, and `LINK_LOCALS`: those that they have chosen themselves.

use zerocopy::{Immutable, IntoBytes};

use crate::wire::address::Address;

/// Key of `ADDRESSES`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct AddressKey {
    /// The L2 domain, as [`Port::bridge`].
    pub bridge: u32,
    /// The VLAN of its container's untagged frames; 0 where there are no VLANs. Two VLANs may use the same address.
    pub vid: u16,
    /// Zero.
    pub pad: [u8; 2],
    /// The address.
    pub address: Address,
}

impl AddressKey {
    /// An address in the VLAN `vid` of a bridge; 0 where there are no VLANs.
    #[inline(always)]
    pub const fn new(bridge: u32, vid: u16, address: Address) -> Self {
        Self { bridge, vid, pad: [0; 2], address }
    }
}

/// Value of `ADDRESSES`: the address's owner.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Owner {
    /// The container's port; [`NO_OWNER`] where another station behind a port has announced the address.
    pub ifindex: u32,
}

/// [`Owner::ifindex`]: a container's address, and no container answers for it.
pub const NO_OWNER: u32 = 0;

/// Value of `LINK_LOCALS`, under the key of a port with [`super::PORT_IP_CHECK`]: the link-local address that its container has
/// chosen itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct LinkLocal {
    /// The address.
    pub address: Address,
    /// When the container has asked whether anybody has it, in nanoseconds of `CLOCK_BOOTTIME`.
    pub since: u64,
}

const _: () = {
    assert!(size_of::<LinkLocal>() == 24);
    assert!(size_of::<AddressKey>() == 24);
    assert!(size_of::<Owner>() == 4);
};
