//! The order of things in an ADD, whatever the interface is joined to: a bridge, or a VLAN.

use super::{Plan, Site, Step};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::result::AddResult;

/// How an interface is made, and joined to what it belongs to.
pub(crate) trait Joint {
    /// What was made to be joined.
    type Ends;

    /// Makes the interface. Nothing gets through it yet.
    fn make(&self, site: &mut Site) -> Result<Self::Ends, Error>;

    /// What will be done, with the addresses that the IPAM gave: none on a layer 2 network.
    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error>;

    /// Joins the interface, and answers the result.
    fn join(&self, plan: &Plan, ends: &Self::Ends, site: &mut Site) -> Result<AddResult, Error>;

    /// Joins it without addresses, for the first time or once more.
    fn try_out(&self, ends: &Self::Ends, site: &mut Site) -> Result<(), Error>;

    /// Takes it out of service, to be joined with addresses.
    fn set_aside(&self, ends: &Self::Ends, site: &mut Site) -> Result<(), Error>;
}

/// Makes the interface and joins it, or leaves nothing behind. `given` are addresses that are known already.
///
/// # Errors
/// What any step says, with what could not be taken back.
pub(crate) fn carry_out<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    mut site: Site,
) -> Result<AddResult, Error> {
    let made = match given {
        None if ipam.needs_interface() => by_interface(joint, ipam, &mut site),
        given => in_order(joint, ipam, given, &mut site),
    };
    made.map_err(|error| error.after_undo(site.undo(ipam)))
}

/// Addresses are given, there are to be none, or their IPAM wants nothing but its configuration.
fn in_order<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    site: &mut Site,
) -> Result<AddResult, Error> {
    let addresses = match given {
        None if ipam.exists() => Some(ask(ipam, site)?),
        given => given,
    };
    let plan = joint.plan(addresses)?;
    let ends = joint.make(site)?;
    joint.join(&plan, &ends, site)
}

/// The IPAM has to find an interface that works, as a DHCP client does, so there is one without addresses first. Restrictions hold
/// already: whoever has no address may ask for one. With the addresses it is attached once more, and its link is down meanwhile.
fn by_interface<J: Joint>(joint: &J, ipam: &Ipam<'_>, site: &mut Site) -> Result<AddResult, Error> {
    let ends = joint.make(site)?;
    joint.try_out(&ends, site)?;
    site.release_bridges();
    let plan = joint.plan(Some(ask(ipam, site)?))?;
    let joined = joint.set_aside(&ends, site).and_then(|()| joint.join(&plan, &ends, site));
    joined.inspect_err(|_| {
        // By it the addresses are given back.
        let _ = joint.try_out(&ends, site);
    })
}

fn ask(ipam: &Ipam<'_>, site: &mut Site) -> Result<AddResult, Error> {
    if ipam.is_built_in() {
        let addresses = ipam.add()?;
        site.journal.push(Step::Addresses);
        return Ok(addresses);
    }
    // A plugin that failed may hold addresses nevertheless.
    site.journal.push(Step::Addresses);
    let addresses = ipam.add()?;
    // It may have taken longer than the agent keeps a silent connection.
    site.agent.reconnect()?;
    Ok(addresses)
}
