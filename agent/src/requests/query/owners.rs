//! Whose a translated connection is: pods by their containers' addresses.

use std::collections::HashMap;

use shunt_agent_api::Pod;
use shunt_dataplane::wire::address::Address;

use crate::resources::Node;
use crate::resources::connection::pairs::Connection;

/// Namespace and name of pods, by bridge and address: two bridges may have the same addresses.
#[derive(Debug, Default)]
pub(crate) struct Owners(HashMap<(u32, Address), (String, String)>);

impl Node {
    /// The pods that the runtime has named.
    pub(crate) fn pod_owners(&self) -> Owners {
        let ports = self.registry.attachments().map(|attachment| &attachment.port);
        let named = ports.filter(|port| port.pod.as_ref().is_some_and(|pod| !pod.name.is_empty()));
        let addresses = named.flat_map(|port| {
            let of = |ip: &_| ((port.bridge.index, Address::from(*ip)), Pod::names(port.pod.as_ref()));
            port.ips.iter().map(of)
        });
        Owners(addresses.collect())
    }
}

impl Owners {
    /// Namespace and name of the pod whose container has begun the connection, or answers it; empty where that is not known.
    pub(crate) fn of(&self, connection: &Connection) -> (String, String) {
        let becomes = connection.opener.becomes;
        let container = match connection.is_masqueraded() {
            true => (connection.request.domain, connection.request.source),
            false => (becomes.domain, becomes.destination),
        };
        self.0.get(&container).cloned().unwrap_or_default()
    }
}
