//! Prepared claims that nothing attached has: their pods are yet to come, or were and will be no more.

use super::missing::has_claim;
use crate::claims::Claim;
use crate::resources::Node;
use crate::state::StoreError;

impl Node {
    /// All of them, in their UIDs' order.
    pub(crate) fn waiting_claims(&self) -> Vec<Claim> {
        self.claims.iter().filter(|claim| self.has_no_attachment(claim)).cloned().collect()
    }

    /// Takes a claim away as [`Self::unprepare`] does, unless it was attached or prepared otherwise meanwhile; whether it was.
    ///
    /// # Errors
    /// See there.
    pub(crate) fn forget_claim(&mut self, claim: &Claim) -> Result<bool, StoreError> {
        if self.claims.get(&claim.uid) != Some(claim) || !self.has_no_attachment(claim) {
            return Ok(false);
        }
        self.unprepare(&claim.uid).map(|()| true)
    }

    fn has_no_attachment(&self, claim: &Claim) -> bool {
        !self.registry.attachments().any(|it| has_claim(&it.port, &claim.uid))
    }
}
