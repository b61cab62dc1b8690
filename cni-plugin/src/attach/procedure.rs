//! The order of things in an ADD, whatever the interface is joined to: a bridge, or a VLAN.

use std::mem::take;

use shunt_agent_api::BridgePort;
use shunt_beside::beside;

use super::{Plan, Site, Step};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::result::AddResult;

/// How an interface is made, and joined to what it belongs to.
pub(crate) trait Joint: Sync {
    /// What was made to be joined.
    type Ends;

    /// Makes the interface. Nothing gets through it yet.
    fn make(&self, site: &mut Site<'_>) -> Result<Self::Ends, Error>;

    /// Joins it without addresses, for the first time or once more.
    fn try_out(&self, ends: &Self::Ends, site: &mut Site<'_>) -> Result<(), Error>;

    /// Takes it out of service, to be joined with addresses.
    fn set_aside(&self, ends: &mut Self::Ends, site: &mut Site<'_>) -> Result<(), Error>;

    /// What will be done, with the addresses that the IPAM gave: none on a layer 2 network.
    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error>;

    /// What the agent is told of it, but for its place.
    fn port(&self, plan: &Plan) -> BridgePort;

    /// Joins it for good.
    fn join(&self, plan: &Plan, ends: &Self::Ends, site: &mut Site<'_>) -> Result<AddResult, Error>;
}

/// Makes the interface and joins it, or leaves nothing behind. `given` are addresses that are known already.
pub(crate) fn carry_out<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    mut site: Site<'_>,
) -> Result<AddResult, Error> {
    let place = &mut site;
    let made = match given {
        None if ipam.needs_interface() => by_interface(joint, ipam, place),
        None if ipam.is_built_in() => side_by_side(joint, ipam, place),
        given => one_by_one(joint, ipam, given, place),
    };
    made.map_err(|error| error.after_undo(site.undo(ipam)))
}

/// Addresses are given, there are to be none, or their IPAM is a program that wants nothing but its configuration.
fn one_by_one<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    site: &mut Site<'_>,
) -> Result<AddResult, Error> {
    site.line.agent()?;
    let addresses = match given {
        None if ipam.exists() => Some(ask(ipam, site)?),
        given => given,
    };
    let plan = joint.plan(addresses)?;
    let ends = joint.make(site)?;
    joint.join(&plan, &ends, site)
}

/// While the kernel makes the interface, the agent is called, and told what it will have to do as soon as the IPAM in this process has found an
/// address, in its files. That somebody listens where the agent should was seen before anything is begun.
fn side_by_side<J: Joint>(joint: &J, ipam: &Ipam<'_>, site: &mut Site<'_>) -> Result<AddResult, Error> {
    site.line.expect_agent()?;
    let mut line = take(&mut site.line);
    let lease = || -> Result<_, Error> {
        line.agent()?;
        let addresses = ipam.add()?;
        let plan = joint.plan(Some(addresses));
        if let Ok(plan) = &plan {
            line.announce(joint.port(plan));
        }
        Ok(plan)
    };
    let (leased, made) = beside(lease, || joint.make(site));
    site.line = line;
    if leased.is_ok() {
        // Given back last, when the container has them no more.
        site.journal.push_first(Step::Addresses);
    }
    joint.join(&leased??, &made?, site)
}

/// The IPAM has to find an interface that works, as a DHCP client does, so there is one without addresses first. Restrictions hold
/// already: whoever has no address may ask for one. With the addresses it is attached once more, and its link is down meanwhile.
fn by_interface<J: Joint>(joint: &J, ipam: &Ipam<'_>, site: &mut Site<'_>) -> Result<AddResult, Error> {
    site.line.agent()?;
    let mut ends = joint.make(site)?;
    joint.try_out(&ends, site)?;
    site.let_go();
    let addresses = ask(ipam, site);
    // A DHCP server may have been waited for longer than the agent keeps a silent connection.
    site.line.redial()?;
    let plan = joint.plan(Some(addresses?))?;
    let joined = joint.set_aside(&mut ends, site).and_then(|()| joint.join(&plan, &ends, site));
    joined.inspect_err(|_| {
        // By it the addresses are given back.
        let _ = joint.try_out(&ends, site);
    })
}

fn ask(ipam: &Ipam<'_>, site: &mut Site<'_>) -> Result<AddResult, Error> {
    // A plugin that failed may hold addresses nevertheless.
    site.journal.push(Step::Addresses);
    Ok(ipam.add()?)
}
