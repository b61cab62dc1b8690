//! Takes back what the preparation of a claim did, before the DEL of its pod or after.

use crate::resources::Node;
use crate::resources::claim::has_claim;
use crate::state::StoreError;

impl Node {
    /// Takes a claim's limits from what it limits, and its file away. One that is not known is no error.
    ///
    /// # Errors
    /// The file cannot be removed: the limits are gone, and the kubelet asks again.
    pub(crate) fn unprepare(&mut self, uid: &str) -> Result<(), StoreError> {
        let Some(claim) = self.claims.remove(uid) else { return self.store.remove_claim(uid) };
        let limited = self.registry.attachments().filter(|it| has_claim(&it.port, uid));
        for key in limited.map(|it| it.port.key.clone()).collect::<Vec<_>>() {
            if let Err(refusal) = self.limit_as(&key, None) {
                self.warn(format!("{key} is limited by claim {claim}, which is no more: {refusal}"));
            }
        }
        self.update_guarantees();
        tracing::info!(%claim, uid, "unprepared");
        self.store.remove_claim(uid)
    }
}
