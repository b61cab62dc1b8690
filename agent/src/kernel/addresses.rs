//! Addresses of the node's interfaces.

use ipnet::IpNet;
use shunt_netlink::address::{Address, add_gateway, addresses, delete_address};
use shunt_netlink::route::{LocalPrefix, local_prefixes};
use shunt_netlink::{AddressFamily, NetlinkError, unless};

use super::{Kernel, KernelError};

impl Kernel {
    /// The addresses of an interface, with their subnets.
    ///
    /// # Errors
    /// Netlink's.
    pub fn subnets(&mut self, index: u32) -> Result<Vec<IpNet>, KernelError> {
        let present = self.route.list(addresses(index, AddressFamily::Unspec))?;
        let present = present.into_iter().filter(|address| address.index == index && !address.is_of_link());
        Ok(present.map(|address: Address| address.prefix).collect())
    }

    /// Gives an interface an address.
    ///
    /// # Errors
    /// Netlink's.
    pub fn add_address(&mut self, index: u32, address: IpNet) -> Result<(), KernelError> {
        Ok(unless(self.route.run(add_gateway(index, address)), NetlinkError::is_existing)?)
    }
    /// Every address of the namespace that is reachable from outside.
    ///
    /// # Errors
    /// Netlink's.
    pub fn addresses(&mut self) -> Result<Vec<Address>, KernelError> {
        self.addresses_that(Address::is_reachable)
    }

    fn addresses_that(&mut self, fit: fn(&Address) -> bool) -> Result<Vec<Address>, KernelError> {
        let mut found = self.route.list(addresses(0, AddressFamily::Unspec))?;
        found.retain(fit);
        Ok(found)
    }

    /// The prefixes that are this host's by the table `local`, whether an interface has an address of theirs or not.
    ///
    /// # Errors
    /// Netlink's.
    pub fn local_prefixes(&mut self) -> Result<Vec<IpNet>, KernelError> {
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            match self.route.list(local_prefixes(family)) {
                Ok(prefixes) => found.extend(prefixes.into_iter().map(|LocalPrefix(prefix)| prefix)),
                // A kernel without the family, or without policy routing.
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Removes an address from an interface; it may be gone already.
    ///
    /// # Errors
    /// Netlink's.
    pub fn remove_address(&mut self, index: u32, address: IpNet) -> Result<(), KernelError> {
        let removed = self.route.run(delete_address(index, address));
        Ok(unless(removed, |error| error.is_missing() || error.is_no_address())?)
    }
}
