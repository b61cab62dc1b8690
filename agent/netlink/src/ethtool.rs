//! A link's speed, and whether its hardware takes tags off, over ethtool's generic netlink family
//! (`Documentation/networking/ethtool-netlink.rst`). The crates have no types for generic netlink without a runtime.

use nix::errno::Errno;
use nix::libc;

use crate::attribute::{attribute, attributes, find, nested, number};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::{Reply, Request};

/// Bytes of `struct genlmsghdr`: command, version, reserved.
const GENLMSGHDR: usize = 4;

/// linux/genetlink.h.
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// linux/ethtool_netlink_generated.h.
const ETHTOOL_MSG_LINKMODES_GET: u8 = 4;
const ETHTOOL_A_LINKMODES_HEADER: u16 = 1;
const ETHTOOL_A_LINKMODES_SPEED: u16 = 5;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;

const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_FEATURES_WANTED: u16 = 3;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BITS_BIT: u16 = 1;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;

/// What the kernel calls `NETIF_F_HW_VLAN_CTAG_RX` (net/ethtool/common.c); `ethtool -K` says `rxvlan`.
const TAKES_TAGS_OFF: &[u8] = b"rx-vlan-hw-parse\0";

/// `SPEED_UNKNOWN`, linux/ethtool.h.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// The attributes of a generic message.
struct Attributes(Vec<u8>);

impl Reply for Attributes {
    fn read(payload: &[u8]) -> Option<Self> {
        Some(Self(payload.get(GENLMSGHDR..)?.to_vec()))
    }
}

/// A socket for the ethtool family.
#[derive(Debug)]
pub struct Ethtool {
    connection: Connection,
    family: u16,
}

impl Ethtool {
    /// Opens a socket and asks for the family's number.
    ///
    /// # Errors
    /// The kernel has no ethtool family (`CONFIG_ETHTOOL_NETLINK`).
    pub fn open() -> Result<Self, NetlinkError> {
        let mut connection = Connection::of(libc::NETLINK_GENERIC)?;
        let mut payload = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
        payload.extend(attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0"));
        let request = Request::raw("look up ethtool", libc::GENL_ID_CTRL as u16, 0, payload);
        let Some(Attributes(said)) = connection.get(request)? else {
            return Err(NetlinkError::Malformed("the kernel has no ethtool family"));
        };
        let family = find(&said, CTRL_ATTR_FAMILY_ID).and_then(|id| id.first_chunk().copied());
        let family = family.map(u16::from_ne_bytes);
        Ok(Self {
            connection,
            family: family.ok_or(NetlinkError::Malformed("no number for the ethtool family"))?,
        })
    }

    /// What a link says of its speed, in bits a second; none if it does not know or has none.
    ///
    /// # Errors
    /// Every kind of [`NetlinkError`], other than that the link has no speed.
    pub fn speed(&mut self, index: u32) -> Result<Option<u64>, NetlinkError> {
        let payload = message(ETHTOOL_MSG_LINKMODES_GET, ETHTOOL_A_LINKMODES_HEADER, index);
        let said = match self.connection.get(Request::raw("read the link's speed", self.family, 0, payload)) {
            Err(error) if error.errno() == Some(Errno::EOPNOTSUPP) => None,
            other => other?,
        };
        let speed = said.and_then(|Attributes(said)| number(find(&said, ETHTOOL_A_LINKMODES_SPEED)?));
        let known = speed.filter(|speed| !matches!(*speed, 0 | SPEED_UNKNOWN));
        Ok(known.map(|megabits| u64::from(megabits) * 1_000_000))
    }

    /// Whether a link's hardware takes VLAN tags off before anybody sees the frame.
    pub fn takes_tags_off(&mut self, index: u32) -> Result<bool, NetlinkError> {
        let payload = message(ETHTOOL_MSG_FEATURES_GET, ETHTOOL_A_FEATURES_HEADER, index);
        let said = self.connection.get(Request::raw("read the link's features", self.family, 0, payload))?;
        Ok(said.is_some_and(|Attributes(said)| is_active(&said).unwrap_or_default()))
    }

    /// Tells a link's hardware to leave VLAN tags where they are. What it does without being asked it may go on doing.
    pub fn leave_tags(&mut self, index: u32) -> Result<(), NetlinkError> {
        // A feature that is named and not set is to be switched off.
        let bit = nested(ETHTOOL_A_BITSET_BITS_BIT, &attribute(ETHTOOL_A_BITSET_BIT_NAME, TAKES_TAGS_OFF));
        let wanted = nested(ETHTOOL_A_FEATURES_WANTED, &nested(ETHTOOL_A_BITSET_BITS, &bit));
        let payload = [message(ETHTOOL_MSG_FEATURES_SET, ETHTOOL_A_FEATURES_HEADER, index), wanted].concat();
        self.connection.run(Request::raw("set the link's features", self.family, 0, payload))
    }
}

fn is_active(said: &[u8]) -> Option<bool> {
    let bits = find(find(said, ETHTOOL_A_FEATURES_ACTIVE)?, ETHTOOL_A_BITSET_BITS)?;
    let is_it = |bit: &[u8]| find(bit, ETHTOOL_A_BITSET_BIT_NAME) == Some(TAKES_TAGS_OFF);
    Some(attributes(bits).any(|bit| bit.kind() == ETHTOOL_A_BITSET_BITS_BIT && is_it(bit.value())))
}

/// A request's beginning: what is asked, and of which link.
fn message(command: u8, header: u16, index: u32) -> Vec<u8> {
    let link = attribute(ETHTOOL_A_HEADER_DEV_INDEX, &index.to_ne_bytes());
    [&[command, 1, 0, 0][..], &nested(header, &link)].concat()
}
