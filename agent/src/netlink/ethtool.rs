//! A link's speed over ethtool's generic netlink family (`Documentation/networking/ethtool-netlink.rst`).

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
        let mut header = Vec::new();
        header.extend(attribute(ETHTOOL_A_HEADER_DEV_INDEX, &ifindex.to_ne_bytes()));
        let mut payload = vec![ETHTOOL_MSG_LINKMODES_GET, 1, 0, 0];
        payload.extend(attribute(ETHTOOL_A_LINKMODES_HEADER | libc::NLA_F_NESTED as u16, &header));
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
}
