//! An attachment as its result says it, compared with the kernel. CHECK reports the faults, FINALIZE puts them right.
//!
//! Only what the result says is compared: later plugins of the chain, and operators, may have changed the rest.

use std::collections::HashMap;

use ipnet::IpNet;
use shunt_netlink::address::addresses;
use shunt_netlink::link::{Link, Selector};
use shunt_netlink::{AddressFamily, Connection};

use crate::call::Call;
use crate::config::{Bridge, Config, Personality};
use crate::error::{Error, Fault};
use crate::mac::Mac;
use crate::node::{Alias, InstalledRoute, Node, Sandbox, holds, installed_routes, port_flags};
use crate::plan::{gateways_of, key, restrictions, vlan_gateway};
use crate::result::{AddResult, Interface, Ip, Route};

/// One attachment under inspection.
#[derive(Debug)]
pub(crate) struct Inspection<'a> {
    pub(crate) config: &'a Config,
    pub(crate) call: &'a Call,
    pub(crate) bridge: &'a Bridge,
    pub(crate) result: &'a AddResult,
}

impl Inspection<'_> {
    /// Finds every fault.
    pub(crate) fn faults(&self, node: &mut Node, sandbox: &mut Sandbox) -> Result<Vec<Fault>, Error> {
        let name = &self.call.ifname;
        let inner = sandbox.link(Selector::Name(name))?.filter(|link| link.kind.as_deref() == Some("veth"));
        let Some(inner) = inner else {
            return Ok(vec![Fault::NoInterface(name.clone())]);
        };
        let mut faults = self.inside(sandbox, &inner)?;
        faults.extend(self.host_side(node, sandbox, &inner)?);
        Ok(faults)
    }

    /// Finds every fault of the container's interface, which is `inner`.
    pub(crate) fn inside(&self, sandbox: &mut Sandbox, inner: &Link) -> Result<Vec<Fault>, Error> {
        let name = &self.call.ifname;
        let mut faults = Vec::new();
        if !inner.up && !self.bridge.disable_container_interface {
            faults.push(Fault::Down(name.clone()));
        }
        faults.extend(self.interface(name, true).and_then(|expected| other_mac(expected, inner)));
        faults.extend(self.missing_addresses(sandbox, inner.index)?);
        faults.extend(self.missing_routes(sandbox)?);
        Ok(faults)
    }

    /// The result's interface of this name, in the container or on the node.
    fn interface(&self, name: &str, inside: bool) -> Option<&Interface> {
        self.result
            .interfaces
            .iter()
            .find(|interface| interface.name == name && interface.sandbox.is_empty() != inside)
    }

    /// The addresses that the result puts on the container's end.
    fn own_addresses(&self) -> impl Iterator<Item = &Ip> {
        self.result.ips_of(&self.call.ifname)
    }

    fn missing_addresses(&self, sandbox: &mut Sandbox, index: u32) -> Result<Vec<Fault>, Error> {
        let present = addresses_of(&mut sandbox.netlink, index)?;
        let expected = self.own_addresses().map(|ip| ip.address);
        Ok(expected.filter(|address| !present.contains(address)).map(Fault::NoAddress).collect())
    }

    fn missing_routes(&self, sandbox: &mut Sandbox) -> Result<Vec<Fault>, Error> {
        let mut faults = Vec::new();
        for v4 in [true, false] {
            let mut expected =
                self.result.routes.iter().filter(|route| route.dst.addr().is_ipv4() == v4).peekable();
            let Some(first) = expected.peek() else {
                continue;
            };
            let mut present: HashMap<IpNet, Vec<InstalledRoute>> = HashMap::new();
            for installed in installed_routes(&mut sandbox.netlink, first.dst.addr())? {
                present.entry(installed.route.dst.trunc()).or_default().push(installed);
            }
            let missing = expected.filter(|route| {
                let mut found = present.get(&route.dst.trunc()).into_iter().flatten();
                !found.any(|installed| is_installed(route, installed))
            });
            faults.extend(missing.cloned().map(Fault::NoRoute));
        }
        Ok(faults)
    }

    fn host_side(&self, node: &mut Node, sandbox: &Sandbox, inner: &Link) -> Result<Vec<Fault>, Error> {
        let mut faults = Vec::new();
        let Some(host) = node.host_end(sandbox, inner)? else {
            return Ok(vec![Fault::NoHostEnd(self.call.ifname.clone())]);
        };
        let own = self.config.personality == Personality::Bridge
            || Alias::is_of(host.alias.as_deref(), &key(self.config, self.call));
        if !own {
            // Another plugin's interface, which that one checks.
            return Ok(faults);
        }
        match self.interface(&host.name, false) {
            Some(expected) => faults.extend(other_mac(expected, &host)),
            None => faults.push(Fault::NoHostEnd(self.call.ifname.clone())),
        }
        if !host.up {
            faults.push(Fault::HostDown { link: host.name.clone(), index: host.index });
        }
        let bridge = node.link(Selector::Name(&self.bridge.bridge))?;
        let Some(bridge) = bridge.filter(|link| link.kind.as_deref() == Some("bridge")) else {
            faults.push(Fault::NoBridge(self.bridge.bridge.clone()));
            return Ok(faults);
        };
        faults.extend(self.interface(&bridge.name, false).and_then(|expected| other_mac(expected, &bridge)));
        if self.bridge.promisc_mode && !bridge.promiscuous {
            faults.push(Fault::NotPromiscuous { bridge: bridge.name.clone(), index: bridge.index });
        }
        let settings = port_flags(self.bridge.hairpin_mode, &restrictions(self.bridge));
        if host.master != Some(bridge.index) {
            faults.push(Fault::NotAPort {
                link: host.name.clone(),
                index: host.index,
                bridge: bridge.name.clone(),
                master: bridge.index,
                settings,
            });
        } else if !holds(settings, host.port_flags) {
            faults.push(Fault::OtherSettings {
                link: host.name.clone(),
                index: host.index,
                master: bridge.index,
                settings,
            });
        }
        faults.extend(self.missing_gateways(node, &bridge)?);
        Ok(faults)
    }

    fn missing_gateways(&self, node: &mut Node, bridge: &Link) -> Result<Vec<Fault>, Error> {
        let gateways = gateways_of(self.own_addresses(), self.bridge);
        if gateways.is_empty() {
            return Ok(Vec::new());
        }
        let in_vlan = vlan_gateway(self.bridge);
        let gateway = match &in_vlan {
            // One that is gone is the agent's to tell of, and to make.
            Some(name) => node.link(Selector::Name(name))?,
            None => Some(bridge.clone()),
        };
        let Some(bridge) = gateway else { return Ok(Vec::new()) };
        let present = addresses_of(&mut node.netlink, bridge.index)?;
        let is_there = |gateway: &IpNet| present.iter().any(|present| present.addr() == gateway.addr());
        let missing = gateways.into_iter().filter(|gateway| !is_there(gateway));
        Ok(missing
            .map(|address| Fault::NoGateway { bridge: bridge.name.clone(), index: bridge.index, address })
            .collect())
    }
}

/// The addresses of an interface, with their subnets.
fn addresses_of(netlink: &mut Connection, index: u32) -> Result<Vec<IpNet>, Error> {
    let present = netlink.list(addresses(index, AddressFamily::Unspec))?.into_iter();
    Ok(present.filter(|address| address.index == index).map(|address| address.prefix).collect())
}

fn other_mac(expected: &Interface, link: &Link) -> Option<Fault> {
    let found = Mac::new(link.mac?).to_string();
    let differs = !expected.mac.is_empty() && !expected.mac.eq_ignore_ascii_case(&found);
    differs.then(|| Fault::OtherMac { link: link.name.clone(), expected: expected.mac.clone(), found })
}

/// Whether the kernel has the route. Metrics are compared where the result names them.
fn is_installed(expected: &Route, installed: &InstalledRoute) -> bool {
    let found = &installed.route;
    let same = |expected: Option<u32>, found: Option<u32>| {
        expected.is_none_or(|value| value == 0 || found == Some(value))
    };
    // The kernel keeps no scope of IPv6 routes.
    let v4 = expected.dst.addr().is_ipv4();
    expected.dst.network() == found.dst.network()
        && expected.dst.prefix_len() == found.dst.prefix_len()
        && expected.gw.is_none_or(|gw| found.gw == Some(gw))
        && same(expected.scope.map(u32::from).filter(|_| v4), found.scope.map(u32::from))
        && same(expected.priority, found.priority)
        && same(expected.table, found.table)
        && same(expected.mtu, found.mtu)
        && same(expected.advmss, found.advmss)
}
