//! Claims that the scheduler has given something of the node: they count before the kubelet has them prepared.

use std::collections::BTreeMap;

use crate::capacity::slice::device_names;
use crate::claims::{Claim, MAX_CLAIMS};
use crate::resources::Node;

impl Node {
    /// All claims that are allocated here, instead of those that were.
    pub(crate) fn set_allocated(&mut self, claims: BTreeMap<String, Claim>) {
        self.allocated.clear();
        for (uid, claim) in claims {
            self.allocate_claim(&uid, Some(claim));
        }
    }

    /// A claim that is allocated here now; none where it no longer is. Beyond [`MAX_CLAIMS`] none is prepared, and none counted.
    pub(crate) fn allocate_claim(&mut self, uid: &str, claim: Option<Claim>) {
        self.allocated.remove(uid);
        let Some(mut claim) = claim.filter(|_| self.allocated.len() < MAX_CLAIMS) else { return };
        let devices = device_names(self.ledger.uplinks());
        for share in &mut claim.shares {
            let mut named = self.ledger.uplinks().zip(&devices);
            let found = named.find(|(_, device)| **device == share.device);
            share.uplink = found.map(|(uplink, _)| uplink.to_owned()).unwrap_or_default();
        }
        self.allocated.insert(uid.to_owned(), claim);
    }
}
