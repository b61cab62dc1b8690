//! A veth pair from the container to a port of the bridge, handed to the agent before it carries a packet.

use shunt_agent_api::{BridgePort, Reply};

use super::metadata;
use crate::attach::{
    AttachError, Found, Introduction, Joint, Node, Plan, Site, complete, ensure_bridge, far_end, interface,
    make_veth, place_of, port_of, prepare, put_into_service, wait_for_addresses,
};
use crate::config::{Bridge, Config};
use crate::error::Error;
use crate::netlink::{Link, Selector};
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

/// Both as they are in the end, and what the agent said.
#[derive(Debug)]
struct Served {
    bridge: Link,
    host: Link,
    attached: Reply,
}

impl Joint for Bridged<'_> {
    type Ends = Ends;

    fn make(&self, site: &mut Site) -> Result<Ends, Error> {
        site.hold_bridges()?;
        let presence = site.presence();
        let may_begin = || presence.expect();
        let bridge = ensure_bridge(&mut site.node, &self.outline.bridge, may_begin, &mut site.journal)?;
        // A bridge that serves others already most likely lacks nothing.
        let master = bridge.serves.then_some(bridge.link.index);
        let host = make_veth(&mut site.node, &site.sandbox, &self.outline, master, &mut site.journal)?;
        Ok(Ends { bridge, host })
    }

    fn try_out(&self, ends: &Ends, site: &mut Site) -> Result<(), Error> {
        site.hold_bridges()?;
        serve(&self.outline, ends, site).map(drop)
    }

    fn set_aside(&self, ends: &mut Ends, site: &mut Site) -> Result<(), Error> {
        // Bridges were let go meanwhile: it may be on this one no more.
        ends.host.master = None;
        site.set_aside(&self.outline.key, &ends.host)
    }

    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error> {
        let plan = self.outline.clone().with(self.config, self.bridge, addresses)?;
        plan.result.can_be_said_in(self.config.version)?;
        Ok(plan)
    }

    fn port(&self, plan: &Plan) -> BridgePort {
        port_of(plan)
    }

    fn join(&self, plan: &Plan, ends: &Ends, site: &mut Site) -> Result<AddResult, Error> {
        site.hold_bridges()?;
        if !ends.bridge.serves {
            complete_bridge(plan, &ends.bridge, site)?;
        }
        let served = serve(plan, ends, site)?;
        let mut result = self.result(plan, &served);
        result.interfaces.extend(gateway(&mut site.node, plan)?);
        Ok(result)
    }
}

impl Bridged<'_> {
    fn result(&self, plan: &Plan, served: &Served) -> AddResult {
        let container = Interface {
            name: plan.key.ifname.clone(),
            mac: plan.mac.to_string(),
            mtu: Some(served.host.mtu),
            sandbox: plan.netns.clone(),
            metadata: metadata::of(self.config, "bridge", &plan.limits, &served.attached),
            ..Interface::default()
        };
        let interfaces = vec![on_node(&served.bridge), on_node(&served.host), container];
        AddResult { interfaces, ..plan.result.clone() }
    }
}

/// Has the agent take the port, and puts it into service.
fn serve(plan: &Plan, ends: &Ends, site: &mut Site) -> Result<Served, Error> {
    let Ends { bridge: found, host } = ends;
    let inner = host.peer.ok_or_else(|| AttachError::Vanished(host.name.clone()))?;
    let introduction = Introduction::begin(&mut site.node, plan, host)?;
    // One that was not born a port is made one first.
    let far_end = host.master.and_then(|_| far_end(plan, host));
    // The agent works while both ends are configured.
    let place = place_of(interface(&found.link), host);
    let taken = site.attach(port_of(plan), place, far_end, |node, sandbox| {
        introduction.finish(node)?;
        prepare(node, sandbox, plan, found, host, inner)
    })?;
    let is_complete = taken.done;
    if found.serves && !is_complete {
        complete_bridge(plan, found, site)?;
    }
    let mut bridge = found.link.clone();
    if plan.bridge.heir_of.is_some() {
        // It may have the uplink's address by now.
        let asked = site.node.link(Selector::Index(bridge.index))?;
        bridge = asked.ok_or_else(|| AttachError::Vanished(plan.bridge.name.clone()))?;
    }
    let host = put_into_service(&mut site.node, &mut site.sandbox, plan, &bridge, host, taken.works)?;
    wait_for_addresses(&mut site.sandbox, plan, inner)?;
    Ok(Served { bridge, host, attached: taken.reply })
}

fn complete_bridge(plan: &Plan, found: &Found, site: &mut Site) -> Result<(), Error> {
    complete(&mut site.node, found, &plan.bridge, site.line.agent()?, &mut site.journal)
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
        mac: link.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        mtu: Some(link.mtu),
        ..Interface::default()
    }
}
