//! A veth pair from the container to a port of the bridge, handed to the agent before it carries a packet.

use shunt_agent_api::{BridgePort, Reply};

use super::metadata;
use crate::attach::{
    AttachError, BridgePlan, Found, Introduction, Joint, Node, Plan, Say, Site, complete, ensure_bridge,
    far_end, interface, make_veth, place_of, port_of, prepare, put_into_service, wait_for_addresses,
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

/// Both as they are in the end, and what came of it.
#[derive(Debug)]
struct Served {
    bridge: Link,
    host: Link,
    said: Said,
}

/// The result, if it was known before the agent had answered, or what that has answered.
#[derive(Debug)]
enum Said {
    /// As it is printed.
    Before(String),
    Not(Reply),
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
        self.serve(&self.outline, ends, site, None).map(drop)
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

    fn join(&self, plan: &Plan, ends: &Ends, site: &mut Site, say: &Say<'_>) -> Result<String, Error> {
        site.hold_bridges()?;
        if !ends.bridge.serves {
            complete_bridge(plan, &ends.bridge, site)?;
        }
        let Served { bridge, host, said } = self.serve(plan, ends, site, Some(say))?;
        let attached = match said {
            Said::Before(result) => return Ok(result),
            Said::Not(attached) => attached,
        };
        let mut result = self.result(plan, &bridge, &host, Some(&attached));
        result.interfaces.extend(gateway(&mut site.node, plan)?);
        say(result)
    }
}

impl Bridged<'_> {
    /// Has the agent take the port, and puts it into service. A result that depends on nothing the agent does is put into words meanwhile.
    fn serve(
        &self,
        plan: &Plan,
        ends: &Ends,
        site: &mut Site,
        say: Option<&Say<'_>>,
    ) -> Result<Served, Error> {
        let Ends { bridge: found, host } = ends;
        let inner = host.peer.ok_or_else(|| AttachError::Vanished(host.name.clone()))?;
        let introduction = Introduction::begin(&mut site.node, plan, host)?;
        // One that was not born a port is made one first.
        let far_end = host.master.and_then(|_| far_end(plan, host));
        // The agent works while both ends are configured.
        let place = place_of(interface(&found.link), host);
        let taken = site.attach(port_of(plan), place, far_end, |node, sandbox| {
            introduction.finish(node)?;
            let is_complete = prepare(node, sandbox, plan, found, host, inner)?;
            let say = say.filter(|_| !self.shows_what_the_agent_does(plan));
            let said = say.map(|say| say(self.result(plan, &found.link, host, None))).transpose()?;
            Ok((is_complete, said))
        })?;
        let (is_complete, said) = taken.done;
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
        let said = match said {
            Some(result) => Said::Before(result),
            None => Said::Not(taken.reply.read()?),
        };
        Ok(Served { bridge, host, said })
    }

    /// Whether the result is another one by what the agent does: it says so itself, moves an uplink's address to the bridge, or makes a gateway.
    fn shows_what_the_agent_does(&self, plan: &Plan) -> bool {
        let BridgePlan { heir_of, vlan_gateway, .. } = &plan.bridge;
        self.config.network.metadata || heir_of.is_some() || vlan_gateway.is_some()
    }

    fn result(&self, plan: &Plan, bridge: &Link, host: &Link, attached: Option<&Reply>) -> AddResult {
        let facts = attached.map(|attached| metadata::of(self.config, "bridge", &plan.limits, attached));
        let container = Interface {
            name: plan.key.ifname.clone(),
            mac: plan.mac.to_string(),
            mtu: Some(host.mtu),
            sandbox: plan.netns.clone(),
            metadata: facts.unwrap_or_default(),
            ..Interface::default()
        };
        let interfaces = vec![on_node(bridge), on_node(host), container];
        AddResult { interfaces, ..plan.result.clone() }
    }
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
