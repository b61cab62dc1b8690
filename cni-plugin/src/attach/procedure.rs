//! The order of things in an ADD, whatever the interface is joined to: a bridge, or a VLAN.

use super::{Plan, Site, Step};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::result::AddResult;

/// How an interface is made, and joined to what it belongs to.
pub(crate) trait Joint {
    /// What was made to be joined.
    type Ends;

    /// Makes the interface and joins it without addresses.
    fn early(&self, site: &mut Site<'_>) -> Result<Self::Ends, Error>;

    /// Joins an interface without addresses once more.
    fn again(&self, ends: &Self::Ends, site: &mut Site<'_>) -> Result<(), Error>;

    /// What will be done, with the addresses that the IPAM gave: none on a layer 2 network.
    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error>;

    /// Joins the interface for good, whether it was joined without addresses (`early`) or has yet to be made.
    fn join(&self, plan: &Plan, early: Option<&Self::Ends>, site: &mut Site<'_>) -> Result<AddResult, Error>;
}

/// Makes the interface and joins it, or leaves nothing behind. `given` are addresses that are known already.
///
/// Where the IPAM has to find an interface that works, as a DHCP client does, there is one without addresses first. Restrictions hold
/// already: whoever has no address may ask for one. With the addresses it is attached once more, and its link is down meanwhile.
pub(crate) fn carry_out<J: Joint>(
    joint: &J,
    ipam: &Ipam<'_>,
    given: Option<AddResult>,
    mut site: Site<'_>,
) -> Result<AddResult, Error> {
    let place = &mut site;
    let make = || {
        let early = ipam.needs_interface().then(|| joint.early(place)).transpose()?;
        let addresses = match given {
            Some(given) => Ok(Some(given)),
            None => ask(ipam, place),
        };
        if early.is_some() {
            // A DHCP server may have been waited for longer than the agent keeps a silent connection.
            place.reconnect()?;
        }
        let plan = joint.plan(addresses?)?;
        joint.join(&plan, early.as_ref(), place).inspect_err(|_| {
            if let Some(ends) = &early {
                // By it the addresses are given back.
                let _ = joint.again(ends, place);
            }
        })
    };
    make().map_err(|error: Error| error.after_undo(site.undo(ipam)))
}

fn ask(ipam: &Ipam<'_>, site: &mut Site<'_>) -> Result<Option<AddResult>, Error> {
    if !ipam.exists() {
        return Ok(None);
    }
    // A plugin that failed may hold addresses nevertheless; the built-in one gives back what it took.
    if ipam.is_delegate() {
        site.journal.push(Step::Addresses);
    }
    let addresses = ipam.add()?;
    if !ipam.is_delegate() {
        site.journal.push(Step::Addresses);
    }
    Ok(Some(addresses))
}
