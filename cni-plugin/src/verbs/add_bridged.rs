//! A veth pair from the container to a port of the bridge, handed to the agent before it carries a packet.

use shunt_agent_api::Reply;
use shunt_netlink::link::{Link, Selector};

use super::metadata;
use crate::attach::{
    AttachError, Found, Joint, Node, Plan, Site, complete, configure, ensure_bridge, interface, join_bridge,
    make_veth, port_of, silence, wait_for_addresses, wait_for_bridge,
};
use crate::config::{Bridge, Config};
use crate::error::Error;
use crate::mac::Mac;
use crate::result::{AddResult, Interface};

/// A container's interface as a port of the configuration's bridge.
#[derive(Debug)]
pub(super) struct Bridged<'a> {
    pub(super) config: &'a Config,
    pub(super) bridge: &'a Bridge,
    /// What is known without addresses.
    pub(super) outline: Plan,
}

/// What an attachment connects: the bridge, and the host's end of the pair.
#[derive(Debug)]
pub(super) struct Ends {
    bridge: Found,
    host: Link,
}

impl Joint for Bridged<'_> {
    type Ends = Ends;

    fn make(&self, site: &mut Site) -> Result<Ends, Error> {
        site.hold_bridges()?;
        let bridge = ensure_bridge(&mut site.node, &self.outline.bridge, &mut site.journal)?;
        let host = make_veth(&mut site.node, &site.sandbox, &self.outline, &mut site.journal)?;
        silence(&host);
        Ok(Ends { bridge, host })
    }

    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error> {
        let plan = self.outline.clone().with(self.config, self.bridge, addresses)?;
        plan.result.can_be_said_in(self.config.version)?;
        Ok(plan)
    }

    fn join(&self, plan: &Plan, ends: &Ends, site: &mut Site) -> Result<AddResult, Error> {
        site.hold_bridges()?;
        complete(&mut site.node, &ends.bridge, &plan.bridge, &mut site.agent, &mut site.journal)?;
        let attached = serve(plan, ends, site)?;
        let mut bridge = ends.bridge.link.clone();
        if plan.bridge.heir_of.is_some() {
            // It may have the uplink's address by now.
            let asked = site.node.link(Selector::Index(bridge.index))?;
            bridge = asked.ok_or_else(|| AttachError::Vanished(plan.bridge.name.clone()))?;
        }
        let mut result = self.result(plan, &bridge, &ends.host, &attached);
        result.interfaces.extend(gateway(&mut site.node, plan)?);
        Ok(result)
    }

    fn try_out(&self, ends: &Ends, site: &mut Site) -> Result<(), Error> {
        site.hold_bridges()?;
        serve(&self.outline, ends, site).map(drop)
    }

    fn set_aside(&self, ends: &Ends, site: &mut Site) -> Result<(), Error> {
        site.detach(&self.outline.key, &ends.host)
    }
}

/// Configures both ends and has the agent put the port into service.
fn serve(plan: &Plan, Ends { bridge, host }: &Ends, site: &mut Site) -> Result<Reply, Error> {
    let inner = host.peer.ok_or_else(|| AttachError::Vanished(host.name.clone()))?;
    configure(&site.node, &mut site.sandbox, plan, inner)?;
    join_bridge(&mut site.node, plan, &bridge.link, host)?;
    let attached = site.attach(port_of(plan, interface(&bridge.link), host))?;
    wait_for_bridge(&mut site.node, plan, &bridge.link)?;
    wait_for_addresses(&mut site.sandbox, plan, inner)?;
    Ok(attached)
}

impl Bridged<'_> {
    fn result(&self, plan: &Plan, bridge: &Link, host: &Link, attached: &Reply) -> AddResult {
        let facts = metadata::of(self.config, "bridge", &plan.limits, attached);
        let container = Interface {
            name: plan.key.ifname.clone(),
            mac: plan.mac.to_string(),
            mtu: Some(host.mtu),
            sandbox: plan.netns.clone(),
            metadata: facts,
            ..Interface::default()
        };
        let interfaces = vec![on_node(bridge), on_node(host), container];
        AddResult { interfaces, ..plan.result.clone() }
    }
}

/// The VLAN's gateway, as the reference plugin has it in its result: behind the container's interface.
fn gateway(node: &mut Node, plan: &Plan) -> Result<Option<Interface>, Error> {
    let Some(name) = plan.bridge.vlan_gateway.as_ref().filter(|_| !plan.bridge.gateways.is_empty()) else {
        return Ok(None);
    };
    let link = node.link(Selector::Name(name))?.ok_or_else(|| AttachError::Vanished(name.clone()))?;
    Ok(Some(on_node(&link)))
}

pub(super) fn on_node(link: &Link) -> Interface {
    Interface {
        name: link.name.clone(),
        mac: link.mac.map(|mac| Mac::new(mac).to_string()).unwrap_or_default(),
        mtu: Some(link.mtu),
        ..Interface::default()
    }
}
