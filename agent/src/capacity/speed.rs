//! What a link says of its speed.
//!
//! It is asked over netlink: sysfs would show the links of the namespace that it was mounted in. A bond answers with the
//! sum of its active members (`bond_ethtool_get_link_ksettings`, drivers/net/bonding/bond_main.c). Links that are made
//! of software answer with a number that means nothing (a veth pair says 10 Gbit/s, a tap 10 Mbit/s, virtio mostly that
//! it does not know), so only those are believed that are hardware or hardware's sum.

use shunt_netlink::ethtool::Ethtool;
use shunt_netlink::link::{Link, Selector, link, links};
use shunt_netlink::{Connection, NetlinkError};

/// What a link says of its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// Bits a second.
    Known(u64),
    /// It does not know, or cannot be believed.
    Unknown,
    /// There is no such link.
    NoLink,
}

/// Asks links for their speed and carrier. Bound to the network namespace that it was opened in.
#[derive(Debug)]
pub struct Speeds {
    route: Connection,
    /// None where the kernel has no ethtool family.
    ethtool: Option<Ethtool>,
}

impl Speeds {
    /// Opens the sockets.
    ///
    /// # Errors
    /// Netlink's.
    pub fn open() -> Result<Self, NetlinkError> {
        let route = Connection::open()?;
        Ok(Self { route, ethtool: Ethtool::open().ok() })
    }

    /// What the link of this name says.
    ///
    /// # Errors
    /// Netlink's.
    pub fn read(&mut self, name: &str) -> Result<Speed, NetlinkError> {
        let Some(found) = self.route.get(link(Selector::Name(name)))? else { return Ok(Speed::NoLink) };
        if !self.is_believable(&found)? {
            return Ok(Speed::Unknown);
        }
        let Some(ethtool) = &mut self.ethtool else { return Ok(Speed::Unknown) };
        Ok(ethtool.speed(found.index)?.map_or(Speed::Unknown, Speed::Known))
    }

    /// Whether the link of this name has a carrier; none if there is no such link.
    ///
    /// # Errors
    /// Netlink's.
    pub fn carrier(&mut self, name: &str) -> Result<Option<bool>, NetlinkError> {
        Ok(self.route.get(link(Selector::Name(name)))?.map(|link| link.carrier))
    }

    fn is_believable(&mut self, link: &Link) -> Result<bool, NetlinkError> {
        Ok(match link.kind.as_deref() {
            None | Some("vlan" | "macvlan") => true,
            Some("bond" | "team") => {
                let mut links = self.route.list(links())?.into_iter();
                links.all(|member| member.master != Some(link.index) || member.kind.is_none())
            }
            _ => false,
        })
    }
}
