//! What an attachment consists of.

use serde::{Deserialize, Serialize};

use super::dns::Dns;
use super::interface::{Interface, Ip};
use super::route::Route;

/// What an attachment consists of (CNI specification 1.1, "Success").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddResult {
    /// The interfaces, host side first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// The container's addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<Ip>,
    /// The container's routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The container's resolver.
    pub dns: Dns,
}

impl AddResult {
    /// The addresses of the interface `ifname`, and those that name no interface.
    pub(crate) fn ips_of<'a>(&'a self, ifname: &'a str) -> impl Iterator<Item = &'a Ip> {
        let is_own = move |index: usize| self.interfaces.get(index).is_some_and(|own| own.name == ifname);
        self.ips.iter().filter(move |ip| ip.interface.is_none_or(is_own))
    }

    /// Whether an address is for the interface `ifname`: it names that one or none, and is not the loopback's, which older versions
    /// do not tell apart.
    pub(crate) fn is_given(&self, ip: &Ip, ifname: &str) -> bool {
        let is_own = |index: usize| self.interfaces.get(index).is_some_and(|own| own.name == ifname);
        ip.interface.is_none_or(is_own) && !ip.address.addr().is_loopback()
    }

    /// What earlier plugins, an IPAM's among them, have given to the interface `ifname`.
    pub(crate) fn given_to(&self, ifname: &str) -> Self {
        let ips = self.ips.iter().filter(|ip| self.is_given(ip, ifname)).cloned().collect();
        Self { interfaces: Vec::new(), ips, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_its_own_addresses_and_those_of_none() {
        let interface = |name: &str| Interface { name: name.to_owned(), ..Interface::default() };
        let ip =
            |interface, address: &str| Ip { interface, address: address.parse().unwrap(), gateway: None };
        let result = AddResult {
            interfaces: vec![interface("cni0"), interface("eth0")],
            ips: vec![
                ip(Some(0), "10.0.0.1/24"),
                ip(Some(1), "10.0.0.2/24"),
                ip(None, "10.0.0.3/24"),
                ip(Some(9), "10.0.0.4/24"),
            ],
            ..AddResult::default()
        };
        let own: Vec<_> = result.ips_of("eth0").map(|ip| ip.address.addr().to_string()).collect();
        assert_eq!(own, ["10.0.0.2", "10.0.0.3"]);
        assert_eq!(result.ips_of("net1").count(), 1);
    }
}
