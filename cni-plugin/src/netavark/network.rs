//! A network as podman keeps it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

use super::error::{NetavarkError, invalid};
use crate::call::check_interface;
use crate::prefix::first_host;

/// What of a network's configuration means something here. `null` is as good as absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Network {
    pub(super) name: String,
    pub(super) id: String,
    /// Whether its containers are to reach nothing outside.
    pub(super) internal: bool,
    /// The bridge.
    pub(super) network_interface: Option<String>,
    pub(super) options: Option<BTreeMap<String, String>>,
    pub(super) ipam_options: Option<BTreeMap<String, String>>,
    pub(super) subnets: Option<Vec<Subnet>>,
    pub(super) routes: Option<Vec<Route>>,
    pub(super) network_dns_servers: Option<Vec<IpAddr>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Subnet {
    pub(super) subnet: IpNet,
    pub(super) gateway: Option<IpAddr>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Route {
    pub(super) destination: IpNet,
    pub(super) gateway: Option<IpAddr>,
    pub(super) metric: Option<u32>,
    pub(super) route_type: Option<String>,
}

/// A subnet with its gateway, an address of the node.
pub(super) type Placed = (IpNet, Option<IpAddr>);

/// Who gives addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ipam {
    /// netavark, from the network's subnets.
    Netavark,
    /// Nobody: the network is of layer 2 only.
    None,
}

impl Network {
    /// Who gives addresses.
    ///
    /// # Errors
    /// [`NetavarkError::NotServed`] for an IPAM that only netavark's own drivers have.
    pub(super) fn ipam(&self) -> Result<Ipam, NetavarkError> {
        let named = self.ipam_options.as_ref().and_then(|options| options.get("driver"));
        match named.map(String::as_str) {
            None | Some("" | "host-local") => Ok(Ipam::Netavark),
            Some("none") => Ok(Ipam::None),
            Some(other) => Err(NetavarkError::NotServed {
                key: format!("ipam_options.driver={other}"),
                cure: "netavark asks a DHCP server for its own drivers only; take host-local or none",
            }),
        }
    }

    /// The bridge's name: the one that was asked for, else one of the network's id.
    ///
    /// # Errors
    /// It cannot be an interface's.
    pub(super) fn bridge(&self) -> Result<String, NetavarkError> {
        let asked = self.network_interface.as_deref().filter(|name| !name.is_empty());
        let name = asked.map_or_else(|| self.default_bridge(), str::to_owned);
        check_interface(&name).map_err(|error| invalid("network_interface", error.to_string()))?;
        Ok(name)
    }

    /// Ids are 64 hexadecimal digits, of which podman shows twelve.
    pub(super) fn default_bridge(&self) -> String {
        let digits = self.id.chars().filter(char::is_ascii_alphanumeric).take(12);
        format!("sh-{}", digits.collect::<String>())
    }

    /// The subnets, each with its gateway: the first address where nothing else is said, and none of an internal network.
    ///
    /// # Errors
    /// [`NetavarkError::Gateway`]; two subnets that overlap.
    pub(super) fn subnets(&self) -> Result<Vec<Placed>, NetavarkError> {
        let mut found: Vec<Placed> = Vec::new();
        for Subnet { subnet, gateway } in self.subnets.iter().flatten() {
            let gateway = gateway.or_else(|| (!self.internal).then(|| first_host(*subnet)));
            let is_wrong = |gateway: &IpAddr| !subnet.contains(gateway) || *gateway == subnet.network();
            if let Some(gateway) = gateway.filter(is_wrong) {
                return Err(NetavarkError::Gateway { gateway, subnet: *subnet });
            }
            let meets =
                |(other, _): &&Placed| other.contains(&subnet.network()) || subnet.contains(&other.network());
            if let Some((other, _)) = found.iter().find(meets) {
                return Err(invalid("subnets", format!("{subnet} overlaps {other}")));
            }
            found.push((subnet.trunc(), gateway));
        }
        Ok(found)
    }
}
