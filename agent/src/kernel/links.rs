//! Links of the namespace.

use std::os::fd::BorrowedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_netlink::link::{
    Link, LinkCounters, Selector, counters_of, delete_link, link, link_counters, link_elsewhere, links,
    ports, set_link_down, set_link_up,
};
use shunt_netlink::namespace_id::{NamespaceId, namespace_id};
use shunt_netlink::{Connection, NetlinkError, unless};

use super::{Kernel, KernelError};

/// How long both ends of a veth may take to become operational; the agent does nothing else meanwhile. The kernel takes a moment, but
/// for a pair whose ends have the same ifindex before Linux 6.8: there up to a second (`linkwatch_urgent_event`, net/core/link_watch.c).
/// An ADD that is repeated gets another ifindex.
const CARRIER_PATIENCE: Duration = Duration::from_millis(500);

/// Deletes the link with this index, if it has this name; it may be gone already. The index alone could mean a link that was made
/// since.
///
/// # Errors
/// Netlink's.
pub(crate) fn delete_if_named(
    connection: &mut Connection,
    index: u32,
    name: &str,
) -> Result<(), NetlinkError> {
    let selector = Selector::Index(index);
    if connection.get(link(selector))?.is_none_or(|link| link.name != name) {
        return Ok(());
    }
    unless(connection.run(delete_link(selector)), NetlinkError::is_missing)
}

impl Kernel {
    /// The link with this index, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        Ok(self.route.get(link(Selector::Index(index)))?)
    }

    /// The link of this name, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link_named(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        Ok(self.route.get(link(Selector::Name(name)))?)
    }

    /// Sets a veth's end up. Where its peer is up, waits until both are operational.
    ///
    /// # Errors
    /// Netlink's; [`KernelError::NotOperational`] where they do not become so in time.
    pub fn set_up(&mut self, host: &Link, peer_up: bool) -> Result<(), KernelError> {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            if self.set_end_up(host)? || !peer_up {
                return Ok(());
            }
            if begun.elapsed() > CARRIER_PATIENCE {
                return Err(KernelError::NotOperational(host.name.clone()));
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Sets a link down.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_down(&mut self, link: &Link) -> Result<(), KernelError> {
        Ok(unless(self.route.run(set_link_down(link.index)), NetlinkError::is_missing)?)
    }

    /// Sets a veth's end up; answers whether both ends are operational. To ask for both in the same breath has the kernel look after
    /// their carriers at once (`linkwatch_sync_dev`, Linux 6.8). A peer that cannot be asked for counts as its own end does.
    fn set_end_up(&mut self, host: &Link) -> Result<bool, NetlinkError> {
        let own = Selector::Index(host.index);
        let peer = host.peer.unwrap_or(host.index);
        let peer = match host.peer_namespace {
            Some(namespace) => link_elsewhere(peer, namespace),
            None => link(Selector::Index(peer)),
        };
        let mut said = self.route.batch(vec![set_link_up(own), link(own).any(), peer.any()])?;
        // The peer may be nowhere.
        let peer = said.pop().and_then(Result::ok);
        let said = said.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut ends = said.iter().chain(&peer).filter_map(|said| said.first::<Link>());
        Ok(ends.all(|end| end.running && end.carrier))
    }

    /// The other end of a veth whose ends are in two namespaces; none where it cannot be seen, as in a namespace that ends.
    pub fn other_end(&mut self, host: &Link) -> Option<Link> {
        let namespace = host.peer_namespace.filter(|number| *number >= 0)?;
        self.route.get(link_elsewhere(host.peer?, namespace)).ok().flatten()
    }

    /// The number by which the node's namespace knows another; none if it does not.
    ///
    /// # Errors
    /// Netlink's.
    pub fn namespace_number(&mut self, namespace: BorrowedFd<'_>) -> Result<Option<i32>, KernelError> {
        Ok(self.route.get(namespace_id(namespace))?.and_then(|NamespaceId(number)| number))
    }

    /// What the kernel counts at every link.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link_counters(&mut self) -> Result<Vec<LinkCounters>, KernelError> {
        Ok(self.route.list(link_counters())?)
    }

    /// What the kernel counts at the link of this name, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link_counters_of(&mut self, name: &str) -> Result<Option<LinkCounters>, KernelError> {
        Ok(self.route.get(counters_of(Selector::Name(name)))?)
    }

    /// Every link.
    ///
    /// # Errors
    /// Netlink's.
    pub fn links(&mut self) -> Result<Vec<Link>, KernelError> {
        Ok(self.route.list(links())?)
    }

    /// Every port of a bridge.
    ///
    /// # Errors
    /// Netlink's.
    pub fn ports(&mut self, bridge: u32) -> Result<Vec<Link>, KernelError> {
        let mut ports = self.route.list(ports(bridge))?;
        ports.retain(|port| port.master == Some(bridge));
        Ok(ports)
    }
}
