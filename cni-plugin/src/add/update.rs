//! ADD of an attachment that is there already: an error, unless `updateExisting` asks for an update in place.
//!
//! The addresses stay what they are, so the IPAM is not asked, and the result is read back from the kernel.

use std::net::IpAddr;

use shunt_agent_api::{BridgePort, Request, USUAL_PACKETS};
use shunt_netlink::AddressFamily;
use shunt_netlink::address::addresses;
use shunt_netlink::link::{Link, Selector};

use super::packets::JUMBO;
use crate::adopt::port_found;
use crate::agent::Agent;
use crate::call::Call;
use crate::config::{Bridge, Config};
use crate::error::{AttachError, Error};
use crate::ipam::lease_dir;
use crate::mac::Mac;
use crate::metadata;
use crate::node::{Alias, InstalledRoute, Node, Sandbox, installed_routes};
use crate::plan::{key, vlan_gateway};
use crate::prefix::first_host;
use crate::result::{AddResult, Interface, Ip, Route};

/// What the update is to find.
#[derive(Debug)]
pub(super) struct Update<'a> {
    pub(super) config: &'a Config,
    pub(super) call: &'a Call,
    pub(super) bridge: &'a Bridge,
    /// The address that the runtime asks for, if it does.
    pub(super) mac: Option<Mac>,
    /// The addresses that it asks for.
    pub(super) requested: Vec<IpAddr>,
}

/// Where the container's end is among the result's interfaces.
const CONTAINER: usize = 2;

impl Update<'_> {
    /// Updates the attachment behind `inner` if it is this one and may be updated; else it is in the way.
    pub(super) fn run(
        &self,
        node: &mut Node,
        sandbox: &mut Sandbox,
        inner: &Link,
    ) -> Result<AddResult, Error> {
        let key = key(self.config, self.call);
        let host = node.host_end(sandbox, inner)?;
        let Some(host) = host.filter(|host| Alias::is_of(host.alias.as_deref(), &key)) else {
            return Err(AttachError::InterfaceExists(self.call.ifname.clone()).into());
        };
        if !self.bridge.update_existing {
            return Err(AttachError::Attached(key).into());
        }
        let bridge = match host.master {
            Some(master) => node.link(Selector::Index(master))?,
            None => None,
        };
        let Some(bridge) = bridge.filter(|bridge| bridge.name == self.bridge.bridge) else {
            return Err(AttachError::OtherFacts { key, what: "bridge" }.into());
        };
        if self.mac.is_some_and(|mac| inner.mac != Some(mac.bytes())) {
            return Err(AttachError::OtherFacts { key, what: "MAC address" }.into());
        }
        if self.bridge.mtu != 0 && self.bridge.mtu != inner.mtu {
            return Err(AttachError::OtherFacts { key, what: "MTU" }.into());
        }
        let mut result = self.read_back(sandbox, &bridge, &host, inner)?;
        if self.requested.iter().any(|wanted| !result.ips.iter().any(|ip| ip.address.addr() == *wanted)) {
            return Err(AttachError::OtherFacts { key, what: "address" }.into());
        }
        if let Some(port) = port_found(node, sandbox, self.config, self.bridge, self.call, &result)? {
            // An agent that does not know the attachment makes it.
            let port = BridgePort { lease_dir: lease_dir(self.config), ..port };
            let limits = port.bandwidth.clone();
            let request = Request::Update { port, keeps_mappings: !self.config.is_asked_for_host_ports() };
            let attached = Agent::of(self.config).ask(request)?;
            let facts = metadata::of(self.config, "bridge", &limits, &attached);
            result.interfaces[CONTAINER].metadata = facts;
        }
        if let Some(name) = vlan_gateway(self.bridge)
            && let Some(link) = node.link(Selector::Name(&name))?
        {
            result.interfaces.push(Interface::on_node(&link));
        }
        Ok(result)
    }

    fn read_back(
        &self,
        sandbox: &mut Sandbox,
        bridge: &Link,
        host: &Link,
        inner: &Link,
    ) -> Result<AddResult, Error> {
        let addresses = sandbox.netlink.list(addresses(inner.index, AddressFamily::Unspec))?.into_iter();
        let addresses = addresses.filter(|address| address.index == inner.index && !address.is_of_link());
        let prefixes: Vec<_> = addresses.map(|address| address.prefix).collect();
        let mut routes = Vec::new();
        for v4 in [true, false] {
            let Some(like) = prefixes.iter().find(|prefix| prefix.addr().is_ipv4() == v4) else {
                continue;
            };
            let present = installed_routes(&mut sandbox.netlink, like.addr())?.into_iter();
            routes.extend(present.filter_map(|route| own(route, inner)));
        }
        let ips = prefixes.into_iter().map(|address| {
            let gateway = routes.iter().filter_map(|route| route.gw).find(|gw| address.contains(gw));
            let gateway = gateway.or_else(|| self.bridge.is_gateway.then(|| first_host(address)));
            Ip { interface: Some(CONTAINER), address, gateway }
        });
        let container = Interface::inside(inner, &self.call.netns);
        Ok(AddResult {
            ips: ips.collect(),
            interfaces: vec![Interface::on_node(bridge), Interface::on_node(host), container],
            routes,
            dns: self.config.network.dns.clone(),
        })
    }
}

/// A route of the attachment's, without what the kernel adds to every route, and without the MTU that leaves room for a jumbo header.
fn own(installed: InstalledRoute, inner: &Link) -> Option<Route> {
    const MAIN: u32 = 254;
    const IPV6_DEFAULT_PRIORITY: u32 = 1024;
    if installed.automatic || installed.index != Some(inner.index) {
        return None;
    }
    let mut route = installed.route;
    let has_jumbo = route.dst.addr().is_ipv6() && inner.largest_packets.ipv6 > USUAL_PACKETS;
    route.mtu = route.mtu.filter(|mtu| !(has_jumbo && *mtu + JUMBO == inner.mtu));
    route.scope = route.scope.filter(|scope| *scope != 0);
    route.table = route.table.filter(|table| *table != MAIN);
    route.priority = route.priority.filter(|priority| *priority != IPV6_DEFAULT_PRIORITY);
    Some(route)
}
