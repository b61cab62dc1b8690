//! Takes queues away that nobody wants any more.

use crate::kernel::KernelError;
use crate::resources::Node;

impl Node {
    /// Removes the queues of an earlier configuration.
    pub(crate) fn sweep_guarantees(&mut self) {
        if let Err(error) = self.remove_unwanted() {
            self.warn(format!("cannot remove the queues of uplinks: {error}"));
        }
    }

    fn remove_unwanted(&mut self) -> Result<(), KernelError> {
        for index in self.kernel.shared_links()? {
            let Some(link) = self.kernel.link(index)? else { continue };
            if !self.ledger.guaranteed().any(|(uplink, _)| uplink == link.name) {
                self.kernel.unshare(index)?;
                tracing::info!(uplink = link.name, "the queue of its shares is removed");
            }
        }
        Ok(())
    }
}
