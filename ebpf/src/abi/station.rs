//! `FDB`: which station is behind which port.

use zerocopy::{Immutable, IntoBytes};

use crate::wire::address::Mac;

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

/// Value of `FDB`: all that delivery needs, so that it costs one look-up.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Station {
    /// Its port; for [`STATION_HOST`] the bridge device.
    pub ifindex: u32,
    /// The port's slot in `COUNTERS`.
    pub slot: u32,
    /// The largest payload that it takes, in bytes without the Ethernet header.
    pub mtu: u32,
    /// `STATION_…` bits.
    pub flags: u32,
}

/// [`Station::flags`]: the node itself (the bridge's own address).
pub const STATION_HOST: u32 = 1;
/// [`Station::flags`]: the peer is up in another namespace, so `bpf_redirect_peer` reaches it.
pub const STATION_PEER_UP: u32 = 2;
/// [`Station::flags`]: its port is isolated ([`PORT_ISOLATED`]).
pub const STATION_ISOLATED: u32 = 4;
/// [`Station::flags`]: packets have to come through its host end: there is a queueing discipline (a shaper's), or an XDP program at
/// the container's end.
pub const STATION_QUEUED: u32 = 8;

/// [`Station::flags`]: its port has [`PORT_SAME_BRIDGE`].
pub const STATION_SAME_BRIDGE: u32 = 16;
/// [`Station::flags`]: its port has [`PORT_ALONE`].
pub const STATION_ALONE: u32 = 32;
/// [`Station::flags`]: beyond an uplink.
pub const STATION_WIRE: u32 = 64;
/// [`Station::flags`]: it was heard at another port since: the kernel's bridge knows where it is. The programs write this bit.
pub const STATION_MOVED: u32 = 128;

/// [`Station::flags`]: somebody has set its port on the kernel's bridge so that the bridge judges what goes there.
pub const STATION_ASIDE: u32 = 0x1000;
/// [`Station::flags`]: its port does not forward. It has [`STATION_ASIDE`] too.
pub const STATION_BLOCKED: u32 = 0x2000;

/// [`Station::flags`]: all of its flows are the kernel's: its port has [`super::AFFINITY_APART`]. The programs set this bit, too.
pub const STATION_APART: u32 = 0x4000;

/// [`Station::flags`]: the kernel opens connections of its container: what the node sends there comes by the kernel's bridge, behind
/// others' rules, and by the port's own program.
pub const STATION_OPENED: u32 = 0x8000;

const _: () = {
    assert!(size_of::<StationKey>() == 12);
    assert!(size_of::<Station>() == 16);
};
