//! Takes queues away that nobody wants any more.

use crate::kernel::KernelError;
use crate::resources::Node;

impl Node {
    /// Removes the queues of an earlier configuration.
    pub(crate) fn sweep_guarantees(&mut self) {
        if let Err(error) =
            self.keep_guarantees(|node, name| node.ledger.guaranteed().any(|(it, _)| it == name))
        {
            self.warn(format!("cannot remove the queues of uplinks: {error}"));
        }
    }

    /// Removes all queues, as they were made by the agent.
    ///
    /// # Errors
    /// Netlink's; some may be left.
    pub(crate) fn remove_guarantees(&mut self) -> Result<(), KernelError> {
        self.keep_guarantees(|_, _| false)
    }

    fn keep_guarantees(&mut self, is_kept: impl Fn(&Self, &str) -> bool) -> Result<(), KernelError> {
        for index in self.kernel.shared_links()? {
            let Some(link) = self.kernel.link(index)? else { continue };
            if !is_kept(self, &link.name) {
                self.kernel.unshare(index)?;
                tracing::info!(uplink = link.name, "the queue of its shares is removed");
            }
        }
        Ok(())
    }
}
