//! Map entries of the node's own addresses.

use std::net::IpAddr;

use shunt_dataplane::abi::translation::{Local, LocalKey};
use shunt_netlink::AddressFamily;
use shunt_netlink::address::{Address, addresses};

use super::{Kernel, KernelError, in_map};
use crate::bpf::maps::{insert, remove};

impl Kernel {
    /// Every address of the namespace that is reachable from outside.
    ///
    /// # Errors
    /// Netlink's.
    pub fn addresses(&mut self) -> Result<Vec<Address>, KernelError> {
        self.addresses_that(Address::is_reachable)
    }

    /// The addresses that masqueraded packets may get.
    ///
    /// # Errors
    /// Netlink's.
    pub fn sources(&mut self) -> Result<Vec<Address>, KernelError> {
        self.addresses_that(Address::is_source)
    }

    fn addresses_that(&mut self, fit: fn(&Address) -> bool) -> Result<Vec<Address>, KernelError> {
        let mut found = self.route.list(addresses(0, AddressFamily::Unspec))?;
        found.retain(fit);
        Ok(found)
    }

    /// Makes an address one of the node's.
    ///
    /// # Errors
    /// The kernel's; the map may be full.
    pub fn write_local(&mut self, ip: IpAddr) -> Result<(), KernelError> {
        let key = LocalKey { address: ip.into() };
        insert(&mut self.maps.locals, key, Local::default()).map_err(in_map("LOCALS"))
    }

    /// Forgets an address of the node.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_local(&mut self, ip: IpAddr) -> Result<(), KernelError> {
        remove(&mut self.maps.locals, &LocalKey { address: ip.into() }).map_err(in_map("LOCALS"))
    }

    /// Removes every other address of the node.
    ///
    /// # Errors
    /// The kernel's.
    pub fn retain_locals(&mut self, is_local: impl Fn(&LocalKey) -> bool) -> Result<(), KernelError> {
        let known: Vec<_> = self.maps.locals.keys().collect::<Result<_, _>>().map_err(in_map("LOCALS"))?;
        for key in known.iter().filter(|key| !is_local(key)) {
            remove(&mut self.maps.locals, key).map_err(in_map("LOCALS"))?;
        }
        Ok(())
    }
}
