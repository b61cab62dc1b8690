//! How the kernel filters sources, and which interfaces share a multipath route.

use std::collections::{BTreeMap, BTreeSet};

use shunt_netlink::AddressFamily;
use shunt_netlink::netconf::{ReversePathFilter, reverse_path_filter};
use shunt_netlink::route::{MultipathInterfaces, multipath_routes};

use super::{Kernel, KernelError};

impl Kernel {
    /// The reverse path filter that is in force at each of these interfaces (`IN_DEV_RPFILTER`: the larger of its own and that of all). One
    /// that cannot be asked for is left out: it is gone, or is no interface of IPv4.
    ///
    /// # Errors
    /// Netlink's.
    pub fn reverse_path_filters(
        &mut self,
        interfaces: impl IntoIterator<Item = u32>,
    ) -> Result<BTreeMap<u32, i32>, KernelError> {
        let ReversePathFilter(everywhere) =
            self.route.get(reverse_path_filter(None))?.unwrap_or(ReversePathFilter(0));
        let mut filters = BTreeMap::new();
        for interface in interfaces {
            if let Ok(Some(ReversePathFilter(here))) = self.route.get(reverse_path_filter(Some(interface))) {
                filters.insert(interface, here.max(everywhere));
            }
        }
        Ok(filters)
    }

    /// The interfaces of each multipath route of IPv4.
    ///
    /// # Errors
    /// Netlink's.
    pub fn multipath_interfaces(&mut self) -> Result<Vec<BTreeSet<u32>>, KernelError> {
        let routes = self.route.list(multipath_routes(AddressFamily::Inet))?;
        Ok(routes.into_iter().map(|MultipathInterfaces(interfaces)| interfaces).collect())
    }
}
