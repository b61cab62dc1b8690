//! A host beyond the node: a namespace behind a veth pair, which goes with it.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use ipnet::IpNet;
use shunt_netlink::address::add_gateway;
use shunt_netlink::link::{Selector, Veth, VethEnd, add_veth, delete_link, link, set_link_up};
use shunt_netlink::route::{Route, add_route};
use shunt_netlink::{Connection, NetlinkError, unless};

use super::namespace::Namespace;

/// The node's end.
const NODE: &str = "shunt-test0";

/// The other one.
const OUTSIDE: &str = "eth0";

/// Addresses of the node and of the outside: RFC 2544's, and a random ULA (RFC 4193).
const ADDRESSES: [[&str; 2]; 2] =
    [["198.18.83.1/30", "198.18.83.2/30"], ["fd8a:51c7:3e02:83::1/64", "fd8a:51c7:3e02:83::2/64"]];

/// The scope of a route to anywhere (`RT_SCOPE_UNIVERSE`).
const UNIVERSE: u8 = 0;

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutsideError {
    #[error("a network namespace cannot be made: {0}")]
    Namespace(#[from] io::Error),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error("the link {0} was not made")]
    NoLink(&'static str),
    #[error("an address of the test's own: {0}")]
    Address(#[from] ipnet::AddrParseError),
}

#[derive(Debug)]
pub(super) struct Outside {
    pub(super) namespace: Namespace,
}

impl Outside {
    /// Joins one to the node. Its way to anywhere is by the node.
    ///
    /// # Errors
    /// [`OutsideError`]; nothing is left then.
    pub(super) fn make(directory: &Path) -> Result<Self, OutsideError> {
        let outside = Self { namespace: Namespace::make(directory, "outside")? };
        let mut node = Connection::open()?;
        // That of a test that was killed.
        unless(node.run(delete_link(Selector::Name(NODE))), NetlinkError::is_missing)?;
        let within = outside.namespace.file().map(std::fs::File::as_fd);
        node.get(add_veth(&Veth {
            end: VethEnd { name: NODE, ..VethEnd::default() },
            peer: VethEnd { name: OUTSIDE, namespace: within, ..VethEnd::default() },
            mtu: None,
        }))?;
        let mut there = outside.namespace.enter(|| Connection::open().map_err(io::Error::other))?;
        let [here, beyond] = [(&mut node, NODE), (&mut there, OUTSIDE)].map(|(connection, name)| {
            connection.run(set_link_up(Selector::Name(name)))?;
            let found = connection.get(link(Selector::Name(name)))?;
            found.map(|link| link.index).ok_or(OutsideError::NoLink(name))
        });
        let (here, beyond) = (here?, beyond?);
        for [own, other] in ADDRESSES {
            let (own, other): (IpNet, IpNet) = (own.parse()?, other.parse()?);
            // A kernel without IPv6 has IPv4 only.
            if node.run(add_gateway(here, own)).is_err() && own.addr().is_ipv6() {
                continue;
            }
            there.run(add_gateway(beyond, other))?;
            let anywhere = if own.addr().is_ipv6() { "::/0" } else { "0.0.0.0/0" };
            let route = Route {
                destination: anywhere.parse()?,
                gateway: Some(own.addr()),
                priority: 0,
                table: None,
                scope: UNIVERSE,
                mtu: 0,
                advmss: 0,
            };
            there.run(add_route(beyond, &route))?;
        }
        Ok(outside)
    }

    /// The node's address on the link, and the outside's.
    pub(super) fn addresses(is_ipv6: bool) -> Option<[IpAddr; 2]> {
        let [own, other] = ADDRESSES[usize::from(is_ipv6)].map(|text| text.parse::<IpNet>().ok());
        Some([own?.addr(), other?.addr()])
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // Its namespace takes along what cannot be deleted, a moment later.
        let _later = Connection::open().and_then(|mut node| node.run(delete_link(Selector::Name(NODE))));
    }
}
