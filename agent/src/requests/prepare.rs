//! Prepares a claim for the kubelet: it is written down, and limits what its pod's ADD attaches.

use crate::capacity::Quantity;
use crate::capacity::slice::device_names;
use crate::claims::{Claim, Share, TooMany};
use crate::resources::Node;
use crate::state::StoreError;

/// Why a claim is not prepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    /// The node has no such device.
    #[error("device {0} is no uplink of this node: its [uplinks] sections name {1}")]
    NoDevice(String, String),
    /// The uplink cannot hand out so much.
    #[error("{asked} bit/s of {way} are more than uplink {uplink} has, {total}")]
    Absurd {
        /// The uplink.
        uplink: String,
        /// `egress` or `ingress`.
        way: &'static str,
        /// What the claim has.
        asked: Quantity,
        /// What the uplink can hand out.
        total: Quantity,
    },
    /// See [`TooMany`].
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// The state directory.
    #[error(transparent)]
    State(#[from] StoreError),
}

impl Node {
    /// Writes a claim down, or replaces what is known of it. Repeating it changes nothing.
    ///
    /// # Errors
    /// [`PrepareError`]; what was prepared still is.
    pub(crate) fn prepare(&mut self, mut claim: Claim) -> Result<(), PrepareError> {
        self.read_speeds();
        let known: Vec<Share> =
            self.claims.get(&claim.uid).map(|known| known.shares.clone()).unwrap_or_default();
        for share in &mut claim.shares {
            self.find_uplink(share)?;
            if !known.contains(share) {
                self.refuse_absurd(share)?;
            }
        }
        if self.claims.get(&claim.uid) == Some(&claim) {
            return Ok(());
        }
        let known = self.claims.get(&claim.uid).cloned();
        let (uid, name) = (claim.uid.clone(), claim.to_string());
        self.claims.insert(claim.clone())?;
        if let Err(error) = self.store.write_claim(&claim) {
            match known {
                Some(known) => self.claims.insert(known)?,
                None => drop(self.claims.remove(&uid)),
            }
            return Err(error.into());
        }
        tracing::info!(claim = name, uid, pod = claim.pod.name, "prepared");
        Ok(())
    }

    /// Fills in the uplink that a device is.
    fn find_uplink(&self, share: &mut Share) -> Result<(), PrepareError> {
        let devices = device_names(self.ledger.uplinks());
        let found = self.ledger.uplinks().zip(&devices).find(|(_, device)| **device == share.device);
        let Some((uplink, _)) = found else {
            return Err(PrepareError::NoDevice(share.device.clone(), devices.join(", ")));
        };
        share.uplink = uplink.to_owned();
        Ok(())
    }

    /// Sees that the uplink can have so much. What was prepared before may be more than it has by now: a bond has lost a member.
    fn refuse_absurd(&self, share: &Share) -> Result<(), PrepareError> {
        let pools = self.ledger.pools().into_iter().find(|(name, _, _)| *name == share.uplink);
        let Some((uplink, egress, ingress)) = pools else { return Ok(()) };
        for (way, asked, total) in
            [("egress", share.egress, egress.total), ("ingress", share.ingress, ingress.total)]
        {
            // Of an uplink whose link is away it is not known what it has.
            if total > 0 && asked > total {
                let (asked, total) = (Quantity(asked), Quantity(total));
                return Err(PrepareError::Absurd { uplink, way, asked, total });
            }
        }
        Ok(())
    }
}
