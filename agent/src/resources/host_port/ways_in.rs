//! The interfaces without an address by which packets may come to the node's addresses: host ports are reached there as well, whether
//! uplinks are declared or not, as the kernel's portmap is.
//!
//! All links are read when the first host port is there, and again at the tick after one of these has come or gone.

use std::collections::BTreeMap;

use shunt_netlink::link::Link;

use super::nat_ingress::hook;
use crate::datapath::attach::hook::Hook;
use crate::kernel::KernelError;
use crate::resources::Node;

/// Kinds of links by which nothing is received from elsewhere.
const DEAF: [&str; 3] = ["dummy", "ifb", "nlmon"];

impl Node {
    /// Reads them, unless they are known.
    ///
    /// # Errors
    /// Netlink's.
    pub(super) fn read_ways_in(&mut self) -> Result<(), KernelError> {
        if self.nat_ingress.ways_in.is_none() {
            let mut links = self.kernel.links()?;
            links.retain(|link| self.is_way_in(link));
            self.nat_ingress.ways_in = Some(links.into_iter().map(|link| (link.index, link)).collect());
        }
        Ok(())
    }

    /// A link has changed or come. What that means is found out at the next tick: a container's is a port by then.
    pub(crate) fn note_way_in(&mut self, link: &Link) {
        let ways_in = self.nat_ingress.ways_in.as_ref();
        if ways_in.is_some_and(|ways_in| ways_in.contains_key(&link.index) != self.is_way_in(link)) {
            self.forget_ways_in();
        }
    }

    /// Has them read again before they are needed.
    pub(crate) fn forget_ways_in(&mut self) {
        self.nat_ingress.ways_in = None;
    }

    /// Attaches the program where it is missing, and detaches it from what leads elsewhere by now.
    pub(crate) fn follow_ways_in(&mut self) {
        if self.is_mapped() && self.nat_ingress.ways_in.is_none() {
            self.update_nat_ingress();
        }
    }

    /// Whether packets come to the node by a link that is nobody's port.
    fn is_way_in(&self, link: &Link) -> bool {
        let is_deaf = link.loopback || link.kind.as_deref().is_some_and(|kind| DEAF.contains(&kind));
        link.up && link.master.is_none() && !is_deaf && !self.is_known(link.index)
    }

    /// The programs of those that are nobody's port still.
    pub(super) fn hooks_of_ways_in(&self) -> BTreeMap<u32, Hook> {
        let links = self.nat_ingress.ways_in.iter().flat_map(BTreeMap::values);
        links
            .filter(|link| !self.is_known(link.index))
            .filter_map(|link| Some((link.index, hook(link)?)))
            .collect()
    }
}
