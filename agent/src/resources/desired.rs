//! What the attachments need on the node, resource by resource.

use super::Node;
use super::guarantee::Guarantee;
use super::host_port::{Ingress, SocketPrograms};
use super::lease::Lease;
use super::masquerade::Outlets;
use super::pins::Pins;
use super::reconcile::Resource;
use super::reverse_path::ReversePaths;
use super::rules::Table;
use super::uplink::MissingUplink;
use super::vlan_gateway::DesiredGateway;

type Resources = Vec<Box<dyn Resource>>;

impl Node {
    /// The bridges.
    pub(crate) fn desired_bridges(&self) -> Resources {
        boxed(self.registry.bridges().cloned()).collect()
    }

    /// The ports of containers.
    pub(crate) fn desired_ports(&self) -> Resources {
        boxed(self.registry.attachments().cloned()).collect()
    }

    /// What bridges and ports need beside themselves.
    pub(crate) fn desired_links(&self) -> Resources {
        let trunks = boxed(self.registry.trunks().cloned());
        let uplinks = boxed(self.registry.uplinks.values().cloned());
        let missing = boxed(MissingUplink::all(self));
        let gateways = boxed(DesiredGateway::all(self));
        trunks.chain(uplinks).chain(missing).chain(gateways).collect()
    }

    /// What the programs need themselves.
    pub(crate) fn desired_basis(&self) -> Resources {
        let own: [Box<dyn Resource>; 5] = [
            Box::new(Pins),
            Box::new(Table),
            Box::new(SocketPrograms),
            Box::new(Outlets),
            Box::new(ReversePaths),
        ];
        own.into_iter().chain(boxed(Ingress::all(self))).chain(boxed(Guarantee::all(self))).collect()
    }

    /// The leases of the containers' addresses.
    pub(crate) fn desired_leases(&self) -> Resources {
        boxed(Lease::all(self)).collect()
    }

    /// Of these, those whose turn it is: each is read from a file.
    pub(crate) fn desired_leases_in_turn(&mut self) -> Resources {
        boxed(Lease::in_turn(self)).collect()
    }

    /// The ports of containers whose bridge was deleted.
    pub(crate) fn desired_orphans(&mut self) -> Resources {
        self.forget_those_found();
        boxed(self.orphans.clone()).collect()
    }
}

fn boxed<R: Resource + 'static>(
    resources: impl IntoIterator<Item = R>,
) -> impl Iterator<Item = Box<dyn Resource>> {
    resources.into_iter().map(|resource| Box::new(resource) as Box<dyn Resource>)
}
