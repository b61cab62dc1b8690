//! What the attachments need on the node, resource by resource.

use super::pins::Pins;
use super::reconcile::Resource;
use super::rules::Table;
use super::uplink::MissingUplink;
use super::vlan_gateway::DesiredGateway;
use super::{Node, host_port::Ingress};

impl Node {
    /// The bridges.
    pub(crate) fn desired_bridges(&self) -> Vec<Box<dyn Resource>> {
        self.registry.bridges().map(|bridge| Box::new(bridge.clone()) as Box<dyn Resource>).collect()
    }

    /// The ports of containers.
    pub(crate) fn desired_ports(&self) -> Vec<Box<dyn Resource>> {
        self.registry.attachments().map(|port| Box::new(port.clone()) as Box<dyn Resource>).collect()
    }

    /// What bridges and ports need beside themselves.
    pub(crate) fn desired_links(&self) -> Vec<Box<dyn Resource>> {
        let trunks = self.registry.trunks().map(|trunk| Box::new(trunk.clone()) as Box<dyn Resource>);
        let uplinks =
            self.registry.uplinks.values().map(|uplink| Box::new(uplink.clone()) as Box<dyn Resource>);
        let missing =
            MissingUplink::all(self).into_iter().map(|uplink| Box::new(uplink) as Box<dyn Resource>);
        let gateways = DesiredGateway::all(self).into_iter().map(|it| Box::new(it) as Box<dyn Resource>);
        trunks.chain(uplinks).chain(missing).chain(gateways).collect()
    }

    /// What the programs need themselves.
    pub(crate) fn desired_basis(&self) -> Vec<Box<dyn Resource>> {
        let ingress = Ingress::all(self).into_iter().map(|ingress| Box::new(ingress) as Box<dyn Resource>);
        let own: [Box<dyn Resource>; 2] = [Box::new(Pins), Box::new(Table)];
        own.into_iter().chain(ingress).collect()
    }
}
