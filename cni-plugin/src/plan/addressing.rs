//! What follows from the addresses: gateways, routes, what is masqueraded.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::Bridge;
use crate::prefix::{default_route, first_host};
use crate::result::{AddResult, Ip, Route};

/// The subnets of its addresses, if what leaves them is to be masqueraded.
pub(crate) fn masqueraded<'a>(ips: impl Iterator<Item = &'a Ip>, bridge: &Bridge) -> Vec<String> {
    let subnet = |ip: &Ip| format!("{}/{}", ip.address.network(), ip.address.prefix_len());
    let subnets: BTreeSet<String> = ips.filter(|_| bridge.ip_masq).map(subnet).collect();
    subnets.into_iter().collect()
}

/// The addresses that a bridge has as the gateway of `ips`: none unless it is one.
pub(crate) fn gateways_of<'a>(ips: impl Iterator<Item = &'a Ip>, bridge: &Bridge) -> Vec<IpNet> {
    let gateway =
        |ip: &Ip| IpNet::new(ip.gateway.unwrap_or(first_host(ip.address)), ip.address.prefix_len()).ok();
    ips.filter(|_| bridge.is_gateway).filter_map(gateway).collect()
}

/// Fills in gateways and default routes as the reference plugin does; answers the bridge's addresses.
pub(super) fn place_gateways(result: &mut AddResult, bridge: &Bridge) -> Vec<IpNet> {
    let mut routes = Vec::new();
    for ip in &mut result.ips {
        // Bridge, host end, container end: every address is on the third.
        ip.interface = Some(2);
        if !bridge.is_gateway {
            continue;
        }
        let gateway = *ip.gateway.get_or_insert(first_host(ip.address));
        let default = default_route(ip.address.addr());
        let known = |route: &Route| route.dst == default && route.gw.is_some();
        if bridge.is_default_gateway && !result.routes.iter().chain(&routes).any(known) {
            routes.push(Route::via(default, Some(gateway)));
        }
    }
    result.routes.extend(routes);
    gateways_of(result.ips.iter(), bridge)
}

/// `RT_SCOPE_LINK`: what is this near has no next hop.
const LINK: u8 = 253;

/// The routes with the family's first gateway where they name none and need one.
pub(super) fn with_next_hops(result: &AddResult) -> Vec<Route> {
    let first = |v4: bool| -> Option<IpAddr> {
        result.ips.iter().filter_map(|ip| ip.gateway).find(|gateway| gateway.is_ipv4() == v4)
    };
    let hop = |route: &Route| match route.scope {
        Some(LINK..) => route.gw,
        _ => route.gw.or_else(|| first(route.dst.addr().is_ipv4())),
    };
    result.routes.iter().map(|route| Route { gw: hop(route), ..route.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(addresses: &[(&str, Option<&str>)]) -> AddResult {
        let ip = |(address, gateway): &(&str, Option<&str>)| Ip {
            interface: None,
            address: address.parse().unwrap(),
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        };
        AddResult { ips: addresses.iter().map(ip).collect(), ..AddResult::default() }
    }

    #[test]
    fn a_default_gateway_gives_each_family_one_default_route() {
        let bridge = Bridge { is_gateway: true, is_default_gateway: true, ..Bridge::default() };
        let mut result =
            ips(&[("10.0.0.5/24", None), ("10.0.1.5/24", None), ("fd00::5/64", Some("fd00::ff"))]);
        let gateways = place_gateways(&mut result, &bridge);
        let text = |prefix: &IpNet| prefix.to_string();
        assert_eq!(
            gateways.iter().map(text).collect::<Vec<_>>(),
            ["10.0.0.1/24", "10.0.1.1/24", "fd00::ff/64"]
        );
        let routes: Vec<_> = result.routes.iter().map(|route| (route.dst.to_string(), route.gw)).collect();
        let v4 = ("0.0.0.0/0".to_owned(), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(routes, [v4, ("::/0".to_owned(), Some("fd00::ff".parse().unwrap()))]);
    }

    #[test]
    fn a_default_route_of_the_ipam_is_kept() {
        let bridge = Bridge { is_gateway: true, is_default_gateway: true, ..Bridge::default() };
        let mut result = ips(&[("10.0.0.5/24", None)]);
        result.routes.push(Route::via("0.0.0.0/0".parse().unwrap(), Some("10.0.0.254".parse().unwrap())));
        place_gateways(&mut result, &bridge);
        assert_eq!(result.routes.len(), 1);
    }

    #[test]
    fn a_route_without_a_next_hop_takes_the_familys_first_gateway() {
        let mut result = ips(&[("fd00::5/64", Some("fd00::1")), ("10.0.0.5/24", Some("10.0.0.9"))]);
        result.routes.push(Route::via("192.0.2.0/24".parse().unwrap(), None));
        assert_eq!(with_next_hops(&result)[0].gw, Some("10.0.0.9".parse().unwrap()));
        assert_eq!(result.routes[0].gw, None, "the result says what the IPAM said");
        result.routes[0].scope = Some(LINK);
        assert_eq!(with_next_hops(&result)[0].gw, None, "the kernel takes no next hop on a link");
    }
}
