//! The order of things in an ADD, whatever the interface is joined to: a bridge, or a VLAN.

use super::{Context, Plan, Step};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::result::AddResult;

/// How an interface is made, and joined to what it belongs to.
pub(crate) trait Attachment {
    /// What was made to be joined.
    type Ends;

    /// Makes the interface. Nothing gets through it yet.
    fn make(&self, context: &mut Context) -> Result<Self::Ends, Error>;

    /// What will be done, with the addresses that the IPAM gave: none on a layer 2 network.
    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error>;

    /// Joins the interface, and answers the result.
    fn join(&self, plan: &Plan, ends: &Self::Ends, context: &mut Context) -> Result<AddResult, Error>;

    /// Joins it without addresses, for the first time or once more.
    fn attach_without_addresses(&self, ends: &Self::Ends, context: &mut Context) -> Result<(), Error>;

    /// Takes it out of service, to be joined with addresses.
    fn detach(&self, ends: &Self::Ends, context: &mut Context) -> Result<(), Error>;
}

/// Makes the interface and joins it, or leaves nothing behind. `given` are addresses that are known already.
///
/// # Errors
/// What any step says, with what could not be taken back.
pub(crate) fn make_attachment<J: Attachment>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    mut context: Context,
) -> Result<AddResult, Error> {
    let made = match given {
        None if ipam.needs_interface() => by_interface(joint, ipam, &mut context),
        given => in_order(joint, ipam, given, &mut context),
    };
    made.map_err(|error| error.after_undo(context.undo(ipam)))
}

/// Addresses are given, there are to be none, or their IPAM wants nothing but its configuration.
fn in_order<J: Attachment>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    context: &mut Context,
) -> Result<AddResult, Error> {
    let addresses = match given {
        None if ipam.exists() => Some(ask(ipam, context)?),
        given => given,
    };
    let plan = joint.plan(addresses)?;
    let ends = joint.make(context)?;
    joint.join(&plan, &ends, context)
}

/// The IPAM has to find an interface that works, as a DHCP client does, so there is one without addresses first. Restrictions hold
/// already: a container without an address may ask for one. With the addresses it is attached once more, and its link is down meanwhile.
fn by_interface<J: Attachment>(
    joint: &J,
    ipam: &Ipam<'_>,
    context: &mut Context,
) -> Result<AddResult, Error> {
    let ends = joint.make(context)?;
    joint.attach_without_addresses(&ends, context)?;
    context.release_bridges();
    let plan = joint.plan(Some(ask(ipam, context)?))?;
    let joined = joint.detach(&ends, context).and_then(|()| joint.join(&plan, &ends, context));
    joined.inspect_err(|_| {
        // By it the addresses are given back.
        let _ = joint.attach_without_addresses(&ends, context);
    })
}

fn ask(ipam: &Ipam<'_>, context: &mut Context) -> Result<AddResult, Error> {
    if ipam.is_built_in() {
        let addresses = ipam.add()?;
        context.journal.push(Step::Addresses);
        return Ok(addresses);
    }
    // A plugin that failed may hold addresses nevertheless.
    context.journal.push(Step::Addresses);
    let addresses = ipam.add()?;
    // It may have taken longer than the agent keeps a silent connection.
    context.agent.reconnect()?;
    Ok(addresses)
}
