//! The order of things in an ADD, whatever the interface is joined to: a bridge, a VLAN, or a master by a device of the kernel's.

use super::context::Context;
use crate::error::Error;
use crate::ipam::Ipam;
use crate::plan::Plan;
use crate::result::AddResult;
use crate::undo::Step;

/// How an interface is made, and joined to what it belongs to.
pub(crate) trait Attachment {
    /// What was made to be joined.
    type Ends;

    /// What is known of it once it is joined.
    type Joined;

    /// Makes the interface. Nothing gets through it yet.
    fn make(&self, context: &mut Context) -> Result<Self::Ends, Error>;

    /// What will be done without addresses.
    fn outline(&self) -> &Plan;

    /// What will be done, with the addresses that the IPAM gave: none on a layer 2 network.
    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error>;

    /// Joins the interface, with the addresses that the plan has.
    fn join(&self, plan: &Plan, ends: &Self::Ends, context: &mut Context) -> Result<Self::Joined, Error>;

    /// Gives the plan's addresses to an interface that was joined without.
    fn give_addresses(
        &self,
        plan: &Plan,
        ends: &Self::Ends,
        context: &mut Context,
    ) -> Result<Self::Joined, Error>;

    /// The result of it all.
    fn result(
        &self,
        plan: &Plan,
        ends: &Self::Ends,
        joined: Self::Joined,
        context: &mut Context,
    ) -> Result<AddResult, Error>;

    /// Whether the kernel may be unable to make it, which is to be known before an address is taken.
    fn is_made_first(&self) -> bool {
        false
    }
}

/// Makes the interface and joins it, or leaves nothing behind. `given` are addresses that are known already.
///
/// # Errors
/// What any step says, with what could not be taken back.
pub(crate) fn make_attachment<A: Attachment>(
    attachment: &A,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    context: &mut Context,
) -> Result<AddResult, Error> {
    let made = in_order(attachment, ipam, given, context);
    made.map_err(|error| error.after_undo(context.undo(ipam)))
}

/// Most IPAMs want nothing but their configuration, and are asked before anything is made. One that has to find an interface that works,
/// as a DHCP client does, is asked when there is one without addresses, which is then given them where it is. Restrictions hold already:
/// a container without an address may ask for one.
fn in_order<A: Attachment>(
    attachment: &A,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    context: &mut Context,
) -> Result<AddResult, Error> {
    let is_asked = given.is_none() && ipam.exists();
    let is_asked_late = is_asked && (ipam.needs_interface() || attachment.is_made_first());
    let early = match (is_asked_late, is_asked) {
        (true, _) => None,
        (false, true) => Some(attachment.plan(Some(ask(ipam, context)?))?),
        (false, false) => Some(attachment.plan(given)?),
    };
    let ends = attachment.make(context)?;
    let joined = attachment.join(early.as_ref().unwrap_or(attachment.outline()), &ends, context)?;
    let (plan, joined) = match early {
        Some(plan) => (plan, joined),
        None => {
            context.release_bridge();
            let plan = attachment.plan(Some(ask(ipam, context)?))?;
            let joined = attachment.give_addresses(&plan, &ends, context)?;
            (plan, joined)
        }
    };
    attachment.result(&plan, &ends, joined, context)
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
    context.agent.disconnect();
    Ok(addresses)
}
