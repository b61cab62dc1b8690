//! The order of things in an ADD, whatever the interface is joined to: a bridge, or a VLAN.

use shunt_agent_api::BridgePort;
use shunt_beside::beside;

use super::way::Way;
use super::{Plan, Site, Step};
use crate::agent::Line;
use crate::error::Error;
use crate::ipam::Ipam;
use crate::result::AddResult;

/// Puts a result into the words that are printed.
pub(crate) type Say<'a> = dyn Fn(AddResult) -> Result<String, Error> + 'a;

/// How an interface is made, and joined to what it belongs to.
pub(crate) trait Joint: Sync {
    /// What was made to be joined.
    type Ends;

    /// Makes the interface, if there is an agent. Nothing gets through it yet.
    fn make(&self, site: &mut Site) -> Result<Self::Ends, Error>;

    /// Joins it without addresses, for the first time or once more.
    fn try_out(&self, ends: &Self::Ends, site: &mut Site) -> Result<(), Error>;

    /// Takes it out of service, to be joined with addresses.
    fn set_aside(&self, ends: &mut Self::Ends, site: &mut Site) -> Result<(), Error>;

    /// What will be done, with the addresses that the IPAM gave: none on a layer 2 network.
    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error>;

    /// What the agent is told of it, but for its place.
    fn port(&self, plan: &Plan) -> BridgePort;

    /// Joins it for good, and answers the result as `say` says it.
    fn join(&self, plan: &Plan, ends: &Self::Ends, site: &mut Site, say: &Say<'_>) -> Result<String, Error>;
}

/// Makes the interface where `enter` leads to and joins it, or leaves nothing behind. `given` are addresses that are known already.
///
/// # Errors
/// What `enter` says, before anything is begun; what any step says, with what could not be taken back.
pub(crate) fn carry_out<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    line: Line,
    enter: impl FnOnce() -> Result<Site, Error>,
    say: &Say<'_>,
) -> Result<String, Error> {
    if given.is_none() && !ipam.needs_interface() && ipam.is_built_in() {
        return side_by_side(joint, ipam, line, enter, say);
    }
    let mut site = enter()?;
    site.line = line;
    let made = match given {
        None if ipam.needs_interface() => by_interface(joint, ipam, &mut site, say),
        given => one_by_one(joint, ipam, given, &mut site, say),
    };
    made.map_err(|error| error.after_undo(site.undo(ipam)))
}

/// Addresses are given, there are to be none, or their IPAM is a program that wants nothing but its configuration.
fn one_by_one<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    site: &mut Site,
    say: &Say<'_>,
) -> Result<String, Error> {
    site.line.agent()?;
    let addresses = match given {
        None if ipam.exists() => Some(ask(ipam, site)?),
        given => given,
    };
    let plan = joint.plan(addresses)?;
    let ends = joint.make(site)?;
    joint.join(&plan, &ends, site, say)
}

/// While the namespaces are entered and the kernel makes the interface, the agent is called, and told what it will have to do as soon as the IPAM in
/// this process has found an address, in its files. It is not asked for one before it is known that there is nothing in the interface's way, nor is
/// anything made before it is seen that somebody listens where the agent should.
fn side_by_side<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    mut line: Line,
    enter: impl FnOnce() -> Result<Site, Error>,
    say: &Say<'_>,
) -> Result<String, Error> {
    let (presence, way) = (line.presence(), Way::default());
    let lease = || -> Result<_, Error> {
        presence.expect()?;
        line.agent()?;
        if !way.is_free() {
            return Ok(None);
        }
        let addresses = ipam.add()?;
        let plan = joint.plan(Some(addresses));
        if let Ok(plan) = &plan {
            line.announce(joint.port(plan));
        }
        Ok(Some(plan))
    };
    let make = || -> Result<_, Error> {
        let entering = way.explore();
        let mut site = enter()?;
        entering.finds_it_free();
        let made = joint.make(&mut site);
        Ok((site, made))
    };
    let (leased, begun) = beside(lease, make);
    let (mut site, made) = begun?;
    site.line = line;
    let joined = match leased {
        Ok(Some(plan)) => {
            // Given back last, when the container has them no more.
            site.journal.push_first(Step::Addresses);
            plan.and_then(|plan| joint.join(&plan, &made?, &mut site, say))
        }
        Ok(None) => unreachable!("the namespaces were entered, and it was seen that the way is free"),
        Err(error) => Err(error),
    };
    joined.map_err(|error| error.after_undo(site.undo(ipam)))
}

/// The IPAM has to find an interface that works, as a DHCP client does, so there is one without addresses first. Restrictions hold
/// already: whoever has no address may ask for one. With the addresses it is attached once more, and its link is down meanwhile.
fn by_interface<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    site: &mut Site,
    say: &Say<'_>,
) -> Result<String, Error> {
    site.line.agent()?;
    let mut ends = joint.make(site)?;
    joint.try_out(&ends, site)?;
    site.let_go();
    let addresses = ask(ipam, site);
    // A DHCP server may have been waited for longer than the agent keeps a silent connection.
    site.line.redial()?;
    let plan = joint.plan(Some(addresses?))?;
    let joined = joint.set_aside(&mut ends, site).and_then(|()| joint.join(&plan, &ends, site, say));
    joined.inspect_err(|_| {
        // By it the addresses are given back.
        let _ = joint.try_out(&ends, site);
    })
}

fn ask(ipam: &Ipam<'_>, site: &mut Site) -> Result<AddResult, Error> {
    // A plugin that failed may hold addresses nevertheless.
    site.journal.push(Step::Addresses);
    Ok(ipam.add()?)
}
