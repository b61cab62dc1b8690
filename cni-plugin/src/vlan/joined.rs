//! A veth whose host end the agent joins to the master: it puts the VLAN's tag on and takes it off.

use shunt_agent_api::{BridgePort, Interface, Restrictions, Service, VlanInterface};
use shunt_netlink::link::{Link, Selector};

use super::master::Master;
use super::share::Wanted;
use crate::add::{
    Attachment, Context, announce, configure, disable_ipv6, inner, make_veth, wait_for_addresses,
};
use crate::error::{AttachError, Error};
use crate::mac::Mac;
use crate::plan::{Plan, port_of};
use crate::result::AddResult;

/// A container's interface in a VLAN: what it is joined to, and how.
#[derive(Debug)]
pub(super) struct Joined<'a> {
    wanted: &'a Wanted<'a>,
    trunk: Interface,
    joins: VlanInterface,
    mac: Mac,
    /// What is known without addresses.
    outline: Plan,
}

impl<'a> Joined<'a> {
    /// Finds what the interface is to be joined to.
    ///
    /// # Errors
    /// [`AttachError::Unjoinable`], and what is wrong with the configuration.
    pub(super) fn new(wanted: &'a Wanted<'a>, context: &mut Context) -> Result<Self, Error> {
        let (trunk, joins) = wanted.master.trunk(wanted.vlan, &mut context.node, &context.sandbox)?;
        let mac = address(wanted.master);
        Ok(Self { wanted, trunk, joins, mac, outline: wanted.plan(mac, None)? })
    }

    /// The interface as the agent is told of it.
    fn port(&self, plan: &Plan, host: &Link) -> BridgePort {
        port(plan, self.joins, self.trunk.clone(), host)
    }
}

/// A parent's VLANs have its address, as the kernel's devices have; a master's need one each to be told apart.
fn address(master: &Master) -> Mac {
    master.link.mac.filter(|_| master.within).map_or_else(Mac::random, Mac::new)
}

impl Attachment for Joined<'_> {
    /// The host's end of the pair.
    type Ends = Link;

    type Joined = ();

    fn make(&self, context: &mut Context) -> Result<Link, Error> {
        let host = make_veth(&mut context.node, &context.sandbox, &self.outline, &mut context.journal)?;
        disable_ipv6(&host);
        Ok(host)
    }

    fn outline(&self) -> &Plan {
        &self.outline
    }

    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error> {
        self.wanted.plan(self.mac, addresses)
    }

    fn join(&self, plan: &Plan, host: &Link, context: &mut Context) -> Result<(), Error> {
        let inner = inner(host)?;
        configure(&context.node, &mut context.sandbox, plan, inner)?;
        context.attach(self.port(plan, host))?;
        wait_for_addresses(&mut context.sandbox, plan, inner)
    }

    fn give_addresses(&self, plan: &Plan, host: &Link, context: &mut Context) -> Result<(), Error> {
        let inner = inner(host)?;
        // Its parent's source guard knows the addresses before the container announces them.
        context.address(self.port(plan, host))?;
        configure(&context.node, &mut context.sandbox, plan, inner)?;
        announce(&context.node, &mut context.sandbox, plan, inner)?;
        wait_for_addresses(&mut context.sandbox, plan, inner)
    }

    fn result(&self, plan: &Plan, host: &Link, (): (), context: &mut Context) -> Result<AddResult, Error> {
        let link = context.sandbox.link(Selector::Index(inner(host)?))?;
        let link = link.ok_or_else(|| AttachError::Vanished(plan.key.ifname.clone()))?;
        Ok(self.wanted.result(plan, &link))
    }
}

/// The interface as the agent is told of it.
pub(super) fn port(plan: &Plan, joins: VlanInterface, trunk: Interface, host: &Link) -> BridgePort {
    BridgePort {
        masquerade: Vec::new(),
        unmasqueraded: Vec::new(),
        restrictions: Restrictions::default(),
        service: Service::default(),
        vlan: Some(joins),
        ..port_of(plan, trunk, host)
    }
}
