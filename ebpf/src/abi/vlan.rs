//! `MEMBERS` and `TAGGED`: ports in VLANs.

use zerocopy::{Immutable, IntoBytes};

/// [`super::StationKey::vid`] of the station behind a port in several VLANs: a container has one place in all of them. A port in one VLAN,
/// and what was heard beyond an uplink, has that VLAN's. No frame carries this number.
pub const VID_ANY: u16 = 4095;

/// The default VLAN of a bridge's ports.
pub const DEFAULT_VID: u16 = 1;

/// `MEMBERS`: every port in VLANs. Written by the agent. Gone with the link.
pub const MAX_MEMBERS: u32 = super::MAX_PORTS;

/// The ports of one bridge (`BR_MAX_PORTS`, net/bridge/br_private.h).
pub const MAX_BRIDGE_PORTS: u32 = 1024;

/// Key of `MEMBERS`: a bridge's ports in VLANs have positions from 0 on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct MemberKey {
    /// The bridge's ifindex.
    pub bridge: u32,
    /// The position. The first that is missing ends the list.
    pub position: u32,
}

/// Value of `MEMBERS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Member {
    /// The port's ifindex; 0 where a port is gone.
    pub ifindex: u32,
}

/// Value of `TAGGED`, by the port's [`super::PortKey`]: the VLANs of which it is a tagged member.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Immutable, IntoBytes)]
pub struct TaggedVlans {
    /// A bit for each VLAN: `vid % 64` of `vid / 64`.
    pub bits: [u64; 64],
}

impl TaggedVlans {
    /// The set of these VLANs.
    pub fn of(vids: &[u16]) -> Self {
        let mut set = Self::default();
        for vid in vids {
            set.bits[usize::from(vid >> 6) & 63] |= 1 << (vid & 63);
        }
        set
    }

    /// Whether a VLAN is in it.
    #[inline(always)]
    pub const fn has(&self, vid: u16) -> bool {
        self.bits[(vid >> 6) as usize & 63] & 1 << (vid & 63) != 0
    }
}

impl Default for TaggedVlans {
    fn default() -> Self {
        Self { bits: [0; 64] }
    }
}

const _: () = {
    assert!(size_of::<MemberKey>() == 8);
    assert!(size_of::<Member>() == 4);
    assert!(size_of::<TaggedVlans>() == 512);
};
