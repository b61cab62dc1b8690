//! What an ADD will do: all but what depends on the addresses is decided before anything is touched.

mod addressing;
mod port;
mod service;

use std::path::PathBuf;

use ipnet::IpNet;
use shunt_agent_api::{AttachmentKey, Bandwidth, Pod, PortMapping, Restrictions, Service};

pub(crate) use addressing::{gateways_of, masqueraded};
pub(crate) use port::{interface, port_of};
pub(crate) use service::{inherits_from, restrictions, service, vlan_gateway};

use crate::call::Call;
use crate::config::{Bridge, Config, unmasqueraded};
use crate::error::{AttachError, Error};
use crate::ipam::lease_dir;
use crate::mac::Mac;
use crate::result::{AddResult, Route};
use addressing::{place_gateways, with_next_hops};

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
    /// The pod, as far as the runtime said.
    pub(crate) pod: Pod,
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
    /// The destinations that see its own address nevertheless.
    pub(crate) unmasqueraded: Vec<String>,
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
            pod: call.pod(),
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
            unmasqueraded: unmasqueraded(bridge)?,
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
    /// [`AttachError::NoAddresses`], [`AttachError::GatewaysAddress`], and what is wrong with the host ports.
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
        let mut own = result.ips.iter().map(|ip| ip.address.addr());
        if let Some(ip) = own.find(|ip| gateways.iter().any(|gateway| gateway.addr() == *ip)) {
            let gateway = self.bridge.vlan_gateway.unwrap_or(self.bridge.name);
            return Err(AttachError::GatewaysAddress { ip, gateway }.into());
        }
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

/// The attachment's key.
pub(crate) fn key(config: &Config, call: &Call) -> AttachmentKey {
    AttachmentKey {
        network: config.network.name.clone(),
        container: call.container.clone(),
        ifname: call.ifname.clone(),
    }
}
