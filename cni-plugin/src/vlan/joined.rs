//! A veth whose host end the agent joins to the master: it puts the VLAN's tag on and takes it off.

use shunt_agent_api::{BridgePort, Interface, Restrictions, Service, VlanInterface};
use shunt_netlink::link::{Link, Selector};

use super::master::Master;
use super::share;
use crate::agent;
use crate::attach::{
    AttachError, Attachment, Context, Node, Plan, Sandbox, configure, disable_ipv6, make_attachment,
    make_veth, port_of, wait_for_addresses,
};
use crate::config::{Config, Vlan};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::mac::Mac;
use crate::protocol::Call;
use crate::result::AddResult;

/// Makes the interface, or leaves nothing behind.
pub(super) fn add(
    config: &Config,
    vlan: &Vlan,
    master: &Master,
    call: &Call,
    mut node: Node,
    sandbox: Sandbox,
    previous: AddResult,
) -> Result<AddResult, Error> {
    let (trunk, joins) = master.trunk(vlan, &mut node)?;
    let address = address(master);
    let ipam = Ipam::of(config, call)?;
    let plan = |addresses| share::plan(config, call, master.mtu(vlan), address, addresses);
    let joined = Joined { outline: plan(None)?, plan, trunk, joins, previous };
    make_attachment(&joined, &ipam, None, Context::new(node, sandbox, agent::connect(config)?))
}

/// A parent's VLANs have its address, as the kernel's devices have; a master's need one each to be told apart.
fn address(master: &Master) -> Mac {
    master.link.mac.filter(|_| master.within).map_or_else(Mac::random, Mac::new)
}

/// A container's interface in a VLAN: what it is joined to, and how.
struct Joined<P> {
    trunk: Interface,
    joins: VlanInterface,
    /// What will be done, by the addresses.
    plan: P,
    /// What is known without them.
    outline: Plan,
    previous: AddResult,
}

impl<P: Fn(Option<AddResult>) -> Result<Plan, Error>> Attachment for Joined<P> {
    /// The host's end of the pair.
    type Ends = Link;

    fn make(&self, context: &mut Context) -> Result<Link, Error> {
        let host = make_veth(&mut context.node, &context.sandbox, &self.outline, &mut context.journal)?;
        disable_ipv6(&host);
        Ok(host)
    }

    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error> {
        (self.plan)(addresses)
    }

    fn join(&self, plan: &Plan, host: &Link, context: &mut Context) -> Result<AddResult, Error> {
        let inner = self.serve(plan, host, context)?;
        Ok(share::result(plan, &inner, self.previous.clone()))
    }

    fn attach_without_addresses(&self, host: &Link, context: &mut Context) -> Result<(), Error> {
        self.serve(&self.outline, host, context).map(drop)
    }

    fn detach(&self, host: &Link, context: &mut Context) -> Result<(), Error> {
        context.detach(&self.outline.key, host)
    }
}

impl<P> Joined<P> {
    /// Configures the container's end and has the agent put the interface into service; answers the container's end.
    fn serve(&self, plan: &Plan, host: &Link, context: &mut Context) -> Result<Link, Error> {
        let inner = host.peer.ok_or_else(|| AttachError::Vanished(host.name.clone()))?;
        configure(&context.node, &mut context.sandbox, plan, inner)?;
        context.attach(port(plan, self.joins, self.trunk.clone(), host))?;
        wait_for_addresses(&mut context.sandbox, plan, inner)?;
        let link = context.sandbox.link(Selector::Index(inner))?;
        Ok(link.ok_or_else(|| AttachError::Vanished(plan.key.ifname.clone()))?)
    }
}

/// The interface as the agent is told of it.
pub(super) fn port(plan: &Plan, joins: VlanInterface, trunk: Interface, host: &Link) -> BridgePort {
    BridgePort {
        masquerade: Vec::new(),
        restrictions: Restrictions::default(),
        service: Service::default(),
        vlan: Some(joins),
        ..port_of(plan, trunk, host)
    }
}
