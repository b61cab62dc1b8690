//! `ALIASES`: what is a container's port for one port of the node only.

use zerocopy::{Immutable, IntoBytes};

use crate::wire::address::{Address, L4Port};

/// Key of `ALIASES`: where the socket sends to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct AliasKey {
    /// The container's address; IPv4 mapped.
    pub address: Address,
    /// The alias; and the source port that the container sees.
    pub port: L4Port,
    /// Zero.
    pub pad: [u8; 2],
}

/// Value of `ALIASES`: a UDP socket, the name by which it asks, and the container's port that this is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Alias {
    /// The socket's cookie, which is never used again.
    pub socket: u64,
    /// When it last asked, within a second, in nanoseconds of `CLOCK_BOOTTIME`.
    pub asked: u64,
    /// The address of the node that it asks.
    pub name: Address,
    /// The port of the node that it asks.
    pub name_port: L4Port,
    /// Its own port.
    pub socket_port: L4Port,
    /// The container's port.
    pub port: L4Port,
    /// Zero.
    pub pad: [u8; 2],
}

const _: () = {
    assert!(size_of::<AliasKey>() == 20);
    assert!(size_of::<Alias>() == 40);
};
