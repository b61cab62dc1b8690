//! Addresses and routes, which netavark has decided, as the result of an earlier plugin.

use std::net::IpAddr;

use ipnet::IpNet;

use super::error::{NetavarkError, invalid};
use super::network::{Ipam, Network, Placed, Route};
use super::options::Options;
use crate::prefix::default_route;
use crate::result::{AddResult, Ip, Route as Made};

/// The result, with `ips` in the network's subnets; none on a network without addresses.
///
/// # Errors
/// An address of no subnet, none at all, or a route that cannot be made.
pub(super) fn given(
    network: &Network,
    options: &Options,
    ips: &[IpAddr],
) -> Result<Option<AddResult>, NetavarkError> {
    let routes = network.routes.iter().flatten().map(route).collect::<Result<Vec<_>, _>>()?;
    if network.ipam()? == Ipam::None {
        return match ips.first() {
            Some(ip) => Err(NetavarkError::NoSubnet(*ip)),
            None => Ok(None),
        };
    }
    if ips.is_empty() {
        return Err(NetavarkError::NoAddress);
    }
    let subnets = network.subnets()?;
    let ips = ips.iter().map(|ip| placed(*ip, &subnets)).collect::<Result<Vec<_>, _>>()?;
    let mut result = AddResult { ips, routes, ..AddResult::default() };
    if options.has_default_route && !network.internal {
        let defaults = defaults(&result, options.metric);
        result.routes.extend(defaults);
    }
    Ok(Some(result))
}

fn placed(ip: IpAddr, subnets: &[Placed]) -> Result<Ip, NetavarkError> {
    let (subnet, gateway) =
        subnets.iter().find(|(subnet, _)| subnet.contains(&ip)).ok_or(NetavarkError::NoSubnet(ip))?;
    let address = IpNet::new(ip, subnet.prefix_len()).map_err(|_| NetavarkError::NoSubnet(ip))?;
    Ok(Ip { interface: None, address, gateway: *gateway })
}

/// One for each family, by its first address.
fn defaults(result: &AddResult, metric: u32) -> Vec<Made> {
    let routed = result.ips.iter().filter(|ip| ip.gateway.is_some());
    let first = |v4: bool| routed.clone().find(|ip| ip.address.addr().is_ipv4() == v4);
    let through =
        |ip: &Ip| Made { priority: Some(metric), ..Made::via(default_route(ip.address.addr()), ip.gateway) };
    [true, false].into_iter().filter_map(|v4| first(v4).map(through)).collect()
}

/// A route of the network's.
///
/// # Errors
/// It has no gateway, one of the other family, or is of a type that has none.
pub(super) fn route(route: &Route) -> Result<Made, NetavarkError> {
    let Route { destination, gateway, metric, route_type } = route;
    if let Some(other) = route_type.as_deref().filter(|kind| *kind != "unicast") {
        let cure = "routes lead through a gateway here; leave the type out";
        return Err(NetavarkError::NotServed { key: format!("routes: {other} {destination}"), cure });
    }
    match gateway {
        Some(gateway) if gateway.is_ipv4() == destination.addr().is_ipv4() => {
            Ok(Made { priority: *metric, ..Made::via(*destination, Some(*gateway)) })
        }
        Some(gateway) => Err(invalid("routes", format!("{destination} and {gateway} are of two families"))),
        None => Err(invalid("routes", format!("{destination} has no gateway"))),
    }
}
