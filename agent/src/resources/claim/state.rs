//! The claims' files at the start.

use crate::resources::Node;

impl Node {
    /// Reads what is prepared. A file that cannot be read is named, and keeps nothing from working: its pod's attachment has its limits in
    /// its own record, and the kubelet's next preparation writes the file anew.
    pub(crate) fn read_claims(&mut self) {
        let (found, unreadable) = match self.store.claims() {
            Ok(read) => read,
            Err(error) => return self.warn(format!("cannot read the claims' files: {error}")),
        };
        for path in unreadable {
            self.warn(format!("a claim's file cannot be read: {}", path.display()));
        }
        for claim in found {
            let name = claim.to_string();
            if let Err(error) = self.claims.insert(claim) {
                self.warn(format!("claim {name} is left out: {error}"));
            }
        }
    }
}
