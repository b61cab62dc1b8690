//! What an ADD will do: all but what depends on the addresses is decided before anything is touched.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use shunt_agent_api::{
    AttachmentKey, Bandwidth, BridgeUplink, PortMapping, Restrictions, Service, VlanGateway, Vlans,
    interface_name,
};

use super::AttachError;
use crate::config::{Bridge, Config, ingress_policy, membership, storm_control};
use crate::error::Error;
use crate::ipam::lease_dir;
use crate::mac::Mac;
use crate::prefix::{default_route, first_host};
use crate::protocol::Call;
use crate::result::{AddResult, Ip, Route};

/// The bridge as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BridgePlan {
    pub(crate) name: String,
    pub(crate) mtu: Option<u32>,
    pub(crate) promiscuous: bool,
    /// The addresses that the node answers on, each with its subnet's prefix.
    pub(crate) gateways: Vec<IpNet>,
    /// The interface that has them where it is not the bridge: the gateway of a VLAN, which the agent makes.
    pub(crate) vlan_gateway: Option<String>,
    /// Whether an address in a gateway's way is removed.
    pub(crate) force_address: bool,
    /// The uplink whose addresses the bridge gets.
    pub(crate) inherits_from: Option<String>,
}

/// One attachment as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) key: AttachmentKey,
    /// The container's namespace as the runtime named it.
    pub(crate) netns: String,
    pub(crate) bridge: BridgePlan,
    pub(crate) mac: Mac,
    pub(crate) mtu: Option<u32>,
    /// What the bridge is told for the port.
    pub(crate) service: Service,
    /// What the port may do less than an open one.
    pub(crate) restrictions: Restrictions,
    /// Whether the container's end is set up.
    pub(crate) up: bool,
    /// Whether IPv6 looks for other stations with its addresses.
    pub(crate) detect_duplicates: bool,
    /// Whether there are addresses to configure at all.
    pub(crate) layer3: bool,
    /// The subnets whose traffic to elsewhere gets the node's address.
    pub(crate) masquerade: Vec<String>,
    /// What the container may send and receive.
    pub(crate) limits: Bandwidth,
    /// The node's ports that lead to it.
    pub(crate) mappings: Vec<PortMapping>,
    /// Where the addresses are leased, if that is known.
    pub(crate) lease_dir: Option<PathBuf>,
    /// The container's routes, each with its next hop.
    pub(crate) routes: Vec<Route>,
    /// The result, but for the interfaces.
    pub(crate) result: AddResult,
}

impl Plan {
    /// Decides all that does not depend on the addresses.
    ///
    /// # Errors
    /// What is wrong with the limits and the host ports.
    pub(crate) fn new(config: &Config, call: &Call, bridge: &Bridge, mac: Mac) -> Result<Self, Error> {
        let mtu = Some(bridge.mtu).filter(|mtu| *mtu > 0);
        // Which of them are answered, the addresses say; whether they can be meant at all is said now.
        config.host_ports(&[])?;
        Ok(Self {
            key: key(config, call),
            netns: call.netns.clone(),
            bridge: BridgePlan {
                name: bridge.bridge.clone(),
                mtu,
                promiscuous: bridge.promisc_mode,
                gateways: Vec::new(),
                vlan_gateway: vlan_gateway(bridge),
                force_address: bridge.force_address,
                inherits_from: inherits_from(bridge),
            },
            mac,
            mtu,
            service: service(bridge, &[]),
            restrictions: restrictions(bridge),
            up: !bridge.disable_container_interface,
            detect_duplicates: bridge.enabledad,
            layer3: false,
            masquerade: Vec::new(),
            mappings: Vec::new(),
            limits: config.limits()?,
            lease_dir: None,
            routes: Vec::new(),
            result: AddResult::default(),
        })
    }

    /// Decides the rest, from what the IPAM gave (`addresses`, none on a layer 2 network).
    ///
    /// # Errors
    /// [`AttachError::NoAddresses`], and what is wrong with the host ports.
    pub(crate) fn with(
        self,
        config: &Config,
        bridge: &Bridge,
        addresses: Option<AddResult>,
    ) -> Result<Self, Error> {
        let layer3 = addresses.is_some();
        let mut result = addresses.unwrap_or_default();
        if layer3 && result.ips.is_empty() {
            return Err(AttachError::NoAddresses.into());
        }
        result.interfaces.clear();
        let gateways = place_gateways(&mut result, bridge);
        let routes = with_next_hops(&result);
        if !config.network.dns.is_empty() {
            result.dns = config.network.dns.clone();
        }
        let ips: Vec<_> = result.ips.iter().map(|ip| ip.address.addr()).collect();
        Ok(Self {
            service: service(bridge, &gateways),
            bridge: BridgePlan { gateways, ..self.bridge },
            layer3,
            masquerade: masqueraded(result.ips.iter(), bridge),
            mappings: config.host_ports(&ips)?,
            lease_dir: lease_dir(config),
            routes,
            result,
            ..self
        })
    }
}

/// The subnets of its addresses, if what leaves them is to be masqueraded.
pub(super) fn masqueraded<'a>(ips: impl Iterator<Item = &'a Ip>, bridge: &Bridge) -> Vec<String> {
    let subnet = |ip: &Ip| format!("{}/{}", ip.address.network(), ip.address.prefix_len());
    let subnets: BTreeSet<String> = ips.filter(|_| bridge.ip_masq).map(subnet).collect();
    subnets.into_iter().collect()
}

/// What the configuration takes from the port.
pub(crate) fn restrictions(bridge: &Bridge) -> Restrictions {
    Restrictions {
        isolated: bridge.port_isolation,
        mac_check: bridge.macspoofchk,
        ip_check: bridge.ipspoofchk,
        // The configuration was judged before; should that fail, the port is in no VLAN and shut.
        vlans: membership(bridge).unwrap_or_else(|_| Some(Vlans::default())),
        ingress: ingress_policy(bridge),
        // As above; a limit that cannot be read was refused.
        storm: storm_control(bridge).unwrap_or_default(),
    }
}

/// What the bridge is told for the port.
pub(crate) fn service(bridge: &Bridge, gateways: &[IpNet]) -> Service {
    let addresses = gateways.iter().map(ToString::to_string).collect();
    let uplink = bridge.uplink().map(|name| BridgeUplink {
        name: name.to_owned(),
        move_address: bridge.uplink_move_address,
        kept: false,
    });
    let hairpin = bridge.hairpin_mode;
    if vlan_gateway(bridge).is_none() || gateways.is_empty() {
        return Service { hairpin, gateways: addresses, uplink, vlan_gateway: None };
    }
    let gateway = VlanGateway { addresses, force_address: bridge.force_address, mac: String::new() };
    Service { hairpin, gateways: Vec::new(), uplink, vlan_gateway: Some(gateway) }
}

/// The name of the node's interface in the VLAN of a port's untagged frames, where the node is the gateway there.
pub(crate) fn vlan_gateway(bridge: &Bridge) -> Option<String> {
    // The configuration was judged before.
    let vid = membership(bridge).ok().flatten()?.untagged?;
    bridge.is_gateway.then(|| interface_name(&bridge.bridge, vid))
}

/// The uplink whose addresses the bridge gets.
pub(crate) fn inherits_from(bridge: &Bridge) -> Option<String> {
    bridge.uplink().filter(|_| bridge.uplink_move_address).map(str::to_owned)
}

/// The attachment's key.
pub(crate) fn key(config: &Config, call: &Call) -> AttachmentKey {
    AttachmentKey {
        network: config.network.name.clone(),
        container: call.container.clone(),
        ifname: call.ifname.clone(),
    }
}

/// The addresses that a bridge has as the gateway of `ips`: none unless it is one.
pub(crate) fn gateways_of<'a>(ips: impl Iterator<Item = &'a Ip>, bridge: &Bridge) -> Vec<IpNet> {
    let gateway =
        |ip: &Ip| IpNet::new(ip.gateway.unwrap_or(first_host(ip.address)), ip.address.prefix_len()).ok();
    ips.filter(|_| bridge.is_gateway).filter_map(gateway).collect()
}

/// Fills in gateways and default routes as the reference plugin does; answers the bridge's addresses.
fn place_gateways(result: &mut AddResult, bridge: &Bridge) -> Vec<IpNet> {
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
fn with_next_hops(result: &AddResult) -> Vec<Route> {
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
