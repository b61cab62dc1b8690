//! What is the node's by route and not by an address of an interface: `ip route add local` (a load balancer's address, a whole prefix).
//! Host ports are there as well, as `addrtype LOCAL` says; but for addresses that hold on one link only, as nothing is forwarded from them.
//!
//! Nobody is told of routes, of which there may be many; the table `local` is short, so it is read each second.

use std::collections::BTreeSet;

use ipnet::IpNet;

use shunt_netlink::address::is_reachable;

use crate::kernel::KernelError;
use crate::resources::Node;

impl Node {
    /// Makes them the node's for the programs, and what is none any more nobody's.
    pub(crate) fn follow_local_routes(&mut self) {
        if let Err(error) = self.update_local_routes() {
            tracing::warn!(%error, "cannot follow the routes to the node itself");
        }
    }

    fn update_local_routes(&mut self) -> Result<(), KernelError> {
        let wanted = self.find_local_routes()?;
        let known = self.nat_ingress.local_routes.clone();
        for gone in known.difference(&wanted) {
            if !self.is_address(gone) {
                self.forget_local(*gone)?;
            }
            self.nat_ingress.local_routes.remove(gone);
        }
        for new in wanted.difference(&known) {
            self.write_local(*new)?;
            self.nat_ingress.local_routes.insert(*new);
        }
        Ok(())
    }

    /// Those that are none of the addresses, and to which others can send.
    pub(super) fn find_local_routes(&mut self) -> Result<BTreeSet<IpNet>, KernelError> {
        if !self.is_mapped() && !self.is_masqueraded() {
            return Ok(BTreeSet::new());
        }
        let mut prefixes = self.kernel.local_prefixes()?;
        prefixes.retain(|prefix| is_reachable(prefix.addr()) && !self.is_address(prefix));
        Ok(prefixes.into_iter().collect())
    }

    fn is_address(&self, prefix: &IpNet) -> bool {
        let is_one = prefix.prefix_len() == prefix.max_prefix_len();
        is_one && self.is_own_address(prefix.addr())
    }
}
