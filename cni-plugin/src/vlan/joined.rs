//! A veth whose host end the agent joins to the master: it puts the VLAN's tag on and takes it off.

use std::net::IpAddr;

use shunt_agent_api::{
    AgentError, BridgePort, Client, ClientError, ErrorKind, Interface, Request, Restrictions, Service,
    VlanInterface,
};

use super::master::Master;
use super::share;
use crate::agent;
use crate::attach::{
    self, AttachError, Journal, Node, Plan, Sandbox, Step, make_veth, silence, wait_for_addresses,
    wait_for_carrier,
};
use crate::config::{Config, Vlan};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::mac::Mac;
use crate::netlink::{Link, Selector, requests};
use crate::protocol::Call;
use crate::result::AddResult;

/// Makes the interface, or leaves nothing behind.
pub(super) fn add(
    config: &Config,
    vlan: &Vlan,
    master: &Master,
    call: &Call,
    node: &mut Node,
    sandbox: &mut Sandbox,
    previous: AddResult,
) -> Result<AddResult, Error> {
    let (trunk, joins) = master.trunk(vlan, node)?;
    let address = address(master);
    let ipam = Ipam::of(config, call)?;
    let mut agent = agent::connect(config)?;
    let mut journal = Journal::default();
    let plan = |addresses| share::plan(config, call, master.mtu(vlan), address, addresses);
    let outline = plan(None)?;
    let joint = Joint { trunk, joins };
    let mut make = || {
        let early = joint.early(&ipam, &outline, node, sandbox, &mut agent, &mut journal)?;
        let addresses = addresses(&ipam, &mut journal);
        if early.is_some() {
            // A DHCP server may be waited for longer than the agent keeps a connection on which nothing is said.
            agent = agent::connect(config)?;
        }
        let plan = plan(addresses?)?;
        let inner =
            joint.join(&plan, early.as_ref(), node, sandbox, &mut agent, &mut journal).inspect_err(|_| {
                if let Some(host) = &early {
                    // By it the addresses are given back.
                    let _ = joint.serve(&outline, host, node, sandbox, &mut agent, &mut journal);
                }
            })?;
        Ok(share::result(&plan, &inner, previous.clone()))
    };
    make().map_err(|error: Error| error.after_undo(journal.undo(node, &mut agent, &ipam)))
}

/// A parent's VLANs have its address, as the kernel's devices have; a master's need one each to be told apart.
fn address(master: &Master) -> Mac {
    master.link.mac.filter(|_| master.within).unwrap_or_else(Mac::random)
}

fn addresses(ipam: &Ipam<'_>, journal: &mut Journal) -> Result<Option<AddResult>, Error> {
    if !ipam.exists() {
        return Ok(None);
    }
    journal.push(Step::Addresses);
    Ok(Some(ipam.add()?))
}

/// What a veth is joined to, and how.
struct Joint {
    trunk: Interface,
    joins: VlanInterface,
}

impl Joint {
    /// Joins an interface without addresses where the IPAM has to find one that works; answers its host end.
    fn early(
        &self,
        ipam: &Ipam<'_>,
        outline: &Plan,
        node: &mut Node,
        sandbox: &mut Sandbox,
        agent: &mut Client,
        journal: &mut Journal,
    ) -> Result<Option<Link>, Error> {
        if !ipam.needs_interface() {
            return Ok(None);
        }
        let host = make(outline, node, sandbox, journal)?;
        self.serve(outline, &host, node, sandbox, agent, journal)?;
        Ok(Some(host))
    }

    /// Joins the interface, once more if it was joined without addresses; answers the container's end.
    fn join(
        &self,
        plan: &Plan,
        early: Option<&Link>,
        node: &mut Node,
        sandbox: &mut Sandbox,
        agent: &mut Client,
        journal: &mut Journal,
    ) -> Result<Link, Error> {
        let made;
        let host = match early {
            Some(host) => {
                node.netlink.ask(requests::set_down(host.index))?;
                agent.ask(Request::Detach { key: plan.key.clone(), link: None })?;
                host
            }
            None => {
                made = make(plan, node, sandbox, journal)?;
                &made
            }
        };
        self.serve(plan, host, node, sandbox, agent, journal)
    }

    fn serve(
        &self,
        plan: &Plan,
        host: &Link,
        node: &mut Node,
        sandbox: &mut Sandbox,
        agent: &mut Client,
        journal: &mut Journal,
    ) -> Result<Link, Error> {
        let inner = host.peer.ok_or_else(|| AttachError::Vanished(host.name.clone()))?;
        journal.push_attached(&plan.key);
        let ips = plan.result.ips.iter().map(|ip| ip.address.address()).collect();
        let request = Request::Attach { port: port(plan, &self.trunk, self.joins, host, ips) };
        agent.ask(request).inspect_err(|error| {
            if matches!(error, ClientError::Refused(AgentError { kind: ErrorKind::Exists, .. })) {
                // What is attached under this key is not this ADD's to detach.
                journal.withdraw_attached();
            }
        })?;
        attach::configure(node, sandbox, plan, inner)?;
        node.netlink.ask(requests::set_up(Selector::Index(host.index)))?;
        wait_for_carrier(node, sandbox, plan, host)?;
        wait_for_addresses(sandbox, plan, inner)?;
        let link = sandbox.link(Selector::Index(inner))?;
        Ok(link.ok_or_else(|| AttachError::Vanished(plan.key.ifname.clone()))?)
    }
}

fn make(plan: &Plan, node: &mut Node, sandbox: &Sandbox, journal: &mut Journal) -> Result<Link, Error> {
    let host = make_veth(node, sandbox, plan, None, journal)?;
    silence(&host);
    Ok(host)
}

/// The interface as the agent is told of it.
pub(super) fn port(
    plan: &Plan,
    trunk: &Interface,
    joins: VlanInterface,
    host: &Link,
    ips: Vec<IpAddr>,
) -> BridgePort {
    BridgePort {
        key: plan.key.clone(),
        bridge: trunk.clone(),
        host: Interface { name: host.name.clone(), index: host.index },
        mac: plan.mac.to_string(),
        ips,
        mtu: host.mtu,
        netns: Some(plan.netns.clone()),
        peer_up: plan.up,
        masquerade: Vec::new(),
        restrictions: Restrictions::default(),
        mappings: plan.mappings.clone(),
        bandwidth: plan.limits.clone(),
        service: Service::default(),
        lease_dir: plan.lease_dir.clone(),
        vlan: Some(joins),
    }
}
