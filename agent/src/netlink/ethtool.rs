//! A link's speed, and whether its hardware takes tags off, over ethtool's generic netlink family (`Documentation/networking/ethtool-netlink.rst`).

use nix::libc;

use super::attribute::attribute;
use super::socket::{self, NetlinkError, RequestSocket};

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

/// A socket for the ethtool family.
#[derive(Debug)]
pub struct Ethtool {
    socket: RequestSocket,
    family: u16,
}

impl Ethtool {
    /// Opens a socket and asks for the family's number.
    ///
    /// # Errors
    /// Netlink's: the kernel has no ethtool family (`CONFIG_ETHTOOL_NETLINK`).
    pub fn open() -> Result<Self, NetlinkError> {
        let mut socket = RequestSocket::open(libc::NETLINK_GENERIC)?;
        let mut payload = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
        payload.extend(attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0"));
        let mut family = None;
        socket.get(libc::GENL_ID_CTRL as u16, &payload, |answer| {
            socket::attributes(answer.get(GENLMSGHDR..).unwrap_or_default(), |kind, value| {
                if kind == CTRL_ATTR_FAMILY_ID {
                    family = value.first_chunk().copied().map(u16::from_ne_bytes);
                }
            });
        })?;
        let family = family.ok_or(NetlinkError::Garbled("no number for the ethtool family"))?;
        Ok(Self { socket, family })
    }

    /// What a link says of its speed, in bits a second; none if it does not know or has none.
    ///
    /// # Errors
    /// Netlink's, other than that the link has no speed.
    pub fn speed(&mut self, ifindex: u32) -> Result<Option<u64>, NetlinkError> {
        let payload = message(ETHTOOL_MSG_LINKMODES_GET, ETHTOOL_A_LINKMODES_HEADER, ifindex);
        let mut speed = None;
        let asked = self.socket.get(self.family, &payload, |answer| {
            socket::attributes(answer.get(GENLMSGHDR..).unwrap_or_default(), |kind, value| {
                if kind == ETHTOOL_A_LINKMODES_SPEED {
                    speed = socket::number(value);
                }
            });
        });
        match asked {
            Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(speed
                .filter(|speed| !matches!(*speed, 0 | SPEED_UNKNOWN))
                .map(|megabits| u64::from(megabits) * 1_000_000)),
        }
    }

    /// Whether a link's hardware takes VLAN tags off before anybody sees the frame.
    ///
    /// # Errors
    /// Netlink's.
    pub fn takes_tags_off(&mut self, ifindex: u32) -> Result<bool, NetlinkError> {
        let payload = message(ETHTOOL_MSG_FEATURES_GET, ETHTOOL_A_FEATURES_HEADER, ifindex);
        let mut is_active = false;
        self.socket.get(self.family, &payload, |answer| {
            within(answer.get(GENLMSGHDR..).unwrap_or_default(), ETHTOOL_A_FEATURES_ACTIVE, |features| {
                within(features, ETHTOOL_A_BITSET_BITS, |bits| {
                    within(bits, ETHTOOL_A_BITSET_BITS_BIT, |bit| {
                        within(bit, ETHTOOL_A_BITSET_BIT_NAME, |name| is_active |= name == TAKES_TAGS_OFF);
                    });
                });
            });
        })?;
        Ok(is_active)
    }

    /// Tells a link's hardware to leave VLAN tags where they are. What it does without being asked it may go on doing.
    ///
    /// # Errors
    /// Netlink's.
    pub fn leave_tags(&mut self, ifindex: u32) -> Result<(), NetlinkError> {
        // A feature that is named and not set is to be switched off.
        let bit = nested(ETHTOOL_A_BITSET_BITS_BIT, &attribute(ETHTOOL_A_BITSET_BIT_NAME, TAKES_TAGS_OFF));
        let wanted = nested(ETHTOOL_A_FEATURES_WANTED, &nested(ETHTOOL_A_BITSET_BITS, &bit));
        let mut payload = message(ETHTOOL_MSG_FEATURES_SET, ETHTOOL_A_FEATURES_HEADER, ifindex);
        payload.extend(wanted);
        self.socket.get(self.family, &payload, |_| {})
    }
}

/// A request's beginning: what is asked, and of which link.
fn message(command: u8, header: u16, ifindex: u32) -> Vec<u8> {
    let mut payload = vec![command, 1, 0, 0];
    payload.extend(nested(header, &attribute(ETHTOOL_A_HEADER_DEV_INDEX, &ifindex.to_ne_bytes())));
    payload
}

fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    attribute(kind | libc::NLA_F_NESTED as u16, value)
}

/// Hands the values of one kind of attribute to `found`.
fn within(attributes: &[u8], wanted: u16, mut found: impl FnMut(&[u8])) {
    socket::attributes(attributes, |kind, value| {
        if kind == wanted {
            found(value);
        }
    });
}
