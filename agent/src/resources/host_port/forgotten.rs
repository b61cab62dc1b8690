//! Datagrams to a host port that the kernel opens: connection tracking knows where they went before, and would send them there for as long as they come.

use std::net::IpAddr;
use std::thread;

use shunt_agent_api::{PortMapping, Protocol};
use shunt_netlink::NetlinkError;
use shunt_netlink::conntrack::{TrackedConnection, forget, tracked_connections};

use crate::datapath::encode::protocol_number;
use crate::resources::Node;

impl Node {
    /// Has connection tracking forget datagrams to host ports that have come or gone, behind the rules that say where they lead now; `opened` by the kernel, or
    /// carried by it still. Beside the agent's thread: there may be many connections.
    pub(crate) fn forget_datagrams<'a>(
        &self,
        opened: bool,
        mappings: impl IntoIterator<Item = &'a PortMapping>,
    ) {
        let udp = mappings.into_iter().filter(|mapping| mapping.protocol == Protocol::Udp);
        let ports: Vec<PortMapping> = udp.copied().collect();
        if ports.is_empty() || !opened && !self.heeding.opening.carries() {
            return;
        }
        let own: Vec<IpAddr> = self.own_addresses().collect();
        let work = move || match forget_to(&ports, &own) {
            Ok(0) => {}
            Ok(forgotten) => tracing::debug!(forgotten, "forgot where datagrams to host ports went before"),
            Err(error) => tracing::warn!(%error, "datagrams to host ports may go where they went before"),
        };
        if let Err(error) = thread::Builder::new().name("forget".into()).spawn(work) {
            tracing::warn!(%error, "cannot start a thread to forget datagrams");
        }
    }
}

fn forget_to(ports: &[PortMapping], own: &[IpAddr]) -> Result<usize, NetlinkError> {
    let mut all = tracked_connections()?;
    all.retain(|connection| is_to(connection, ports, own));
    let originals: Vec<_> = all.iter().map(|connection| connection.original).collect();
    forget(&originals)
}

fn is_to(connection: &TrackedConnection, ports: &[PortMapping], own: &[IpAddr]) -> bool {
    let to = connection.original.destination;
    let is_one = |port: &PortMapping| port.host_port == to.port() && port.is_at(to.ip());
    connection.original.protocol == protocol_number(Protocol::Udp)
        && own.contains(&to.ip())
        && ports.iter().any(is_one)
}
