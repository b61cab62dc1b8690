//! A veth pair from the container to a port of the bridge, handed to the agent before it carries a packet.

use nix::errno::Errno;
use shunt_agent_api::Reply;
use shunt_netlink::link::{Link, Selector};

use super::bridge::{Found, complete, ensure_bridge};
use super::container::{announce, configure_silently};
use super::context::Context;
use super::packets::{enlarge, follow_routes};
use super::procedure::Attachment;
use super::veth::{disable_ipv6, inner, make_veth};
use super::wait::{wait_for_addresses, wait_for_bridge};
use crate::config::{Bridge, Config};
use crate::error::{AttachError, Error};
use crate::metadata;
use crate::node::{BridgeSide, Node, port_flags};
use crate::plan::{Plan, interface, port_of};
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

impl Attachment for Bridged<'_> {
    type Ends = Ends;

    /// What the agent says of it.
    type Joined = Reply;

    fn make(&self, context: &mut Context) -> Result<Ends, Error> {
        context.hold_bridge(&self.outline.bridge.name)?;
        let bridge = ensure_bridge(&mut context.node, &self.outline.bridge, &mut context.journal)?;
        let host = make_veth(&mut context.node, &context.sandbox, &self.outline, &mut context.journal)?;
        disable_ipv6(&host);
        Ok(Ends { bridge, host })
    }

    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error> {
        let plan = self.outline.clone().with(self.config, self.bridge, addresses)?;
        plan.result.can_be_expressed_in(self.config.version)?;
        Ok(plan)
    }

    fn outline(&self) -> &Plan {
        &self.outline
    }

    fn join(&self, plan: &Plan, ends: &Ends, context: &mut Context) -> Result<Reply, Error> {
        context.hold_bridge(&plan.bridge.name)?;
        complete_for(plan, ends, context)?;
        let Ends { bridge, host } = ends;
        let inner = inner(host)?;
        configure_silently(&context.node, &mut context.sandbox, plan, inner)?;
        join_bridge(&mut context.node, plan, &bridge.link, host)?;
        let attached = context.attach(port_of(plan, interface(&bridge.link), host))?;
        enlarge(&mut context.sandbox, plan, (inner, host.mtu), &attached)?;
        wait_for_bridge(&mut context.node, plan, &bridge.link)?;
        wait_for_addresses(&mut context.sandbox, plan, inner)?;
        announce(&context.node, &mut context.sandbox, plan, inner)?;
        Ok(attached)
    }

    fn give_addresses(&self, plan: &Plan, ends: &Ends, context: &mut Context) -> Result<Reply, Error> {
        context.hold_bridge(&plan.bridge.name)?;
        complete_for(plan, ends, context)?;
        let Ends { bridge, host } = ends;
        let inner = inner(host)?;
        // The source guard knows the addresses before the container announces them.
        let addressed = context.address(port_of(plan, interface(&bridge.link), host))?;
        configure_silently(&context.node, &mut context.sandbox, plan, inner)?;
        follow_routes(&mut context.sandbox, plan, (inner, host.mtu))?;
        announce(&context.node, &mut context.sandbox, plan, inner)?;
        wait_for_addresses(&mut context.sandbox, plan, inner)?;
        Ok(addressed)
    }

    fn result(
        &self,
        plan: &Plan,
        ends: &Ends,
        joined: Reply,
        context: &mut Context,
    ) -> Result<AddResult, Error> {
        let mut bridge = ends.bridge.link.clone();
        if plan.bridge.inherits_from.is_some() {
            // It may have the uplink's address by now.
            let asked = context.node.link(Selector::Index(bridge.index))?;
            bridge = asked.ok_or_else(|| AttachError::Vanished(plan.bridge.name.clone()))?;
        }
        let mut result = self.interfaces_and(plan, &bridge, &ends.host, &joined);
        result.interfaces.extend(gateway(&mut context.node, plan)?);
        Ok(result)
    }
}

/// Gives the bridge what it lacks of the plan.
fn complete_for(plan: &Plan, ends: &Ends, context: &mut Context) -> Result<(), Error> {
    let Context { node, agent, journal, .. } = context;
    complete(node, &ends.bridge, &plan.bridge, agent, journal)
}

/// Makes the host's end, which is down, a port of the bridge, and tells the bridge how to treat it.
fn join_bridge(node: &mut Node, plan: &Plan, bridge: &Link, host: &Link) -> Result<(), Error> {
    let flags = port_flags(plan.service.hairpin, &plan.restrictions);
    let station = Some(plan.mac.bytes());
    let is_fixed = plan.restrictions.is_checked();
    let side = BridgeSide { index: host.index, bridge: bridge.index, flags, station, is_fixed };
    let joined = side.add(node).and_then(|changes| node.netlink.run_all(changes));
    match joined {
        Ok(_) => Ok(()),
        Err(error) if error.errno() == Some(Errno::EXFULL) => {
            Err(AttachError::BridgeFull(plan.bridge.name.clone()).into())
        }
        Err(error) => Err(error.into()),
    }
}

impl Bridged<'_> {
    /// What the plan has for the result, and the interfaces.
    fn interfaces_and(&self, plan: &Plan, bridge: &Link, host: &Link, attached: &Reply) -> AddResult {
        let facts = metadata::of(self.config, "bridge", &plan.limits, attached);
        let container = Interface {
            name: plan.key.ifname.clone(),
            mac: plan.mac.to_string(),
            mtu: Some(host.mtu),
            sandbox: plan.netns.clone(),
            metadata: facts,
            ..Interface::default()
        };
        let interfaces = vec![Interface::on_node(bridge), Interface::on_node(host), container];
        AddResult { interfaces, ..plan.result.clone() }
    }
}

/// The VLAN's gateway, as the reference plugin has it in its result: behind the container's interface.
fn gateway(node: &mut Node, plan: &Plan) -> Result<Option<Interface>, Error> {
    let Some(name) = plan.bridge.vlan_gateway.as_ref().filter(|_| !plan.bridge.gateways.is_empty()) else {
        return Ok(None);
    };
    let link = node.link(Selector::Name(name))?.ok_or_else(|| AttachError::Vanished(name.clone()))?;
    Ok(Some(Interface::on_node(&link)))
}
