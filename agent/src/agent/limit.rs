//! Changing the limits of an attachment that is there, under its traffic.

use shunt_agent_api::{AttachmentKey, Bandwidth};

use super::{Agent, Refusal, admit};

impl Agent {
    /// Gives an attachment other limits. What waits in a queue whose limit is changed goes on waiting.
    ///
    /// # Errors
    /// [`Refusal`]; then the old limits are in force again, as far as the kernel allows.
    pub fn limit(&mut self, key: &AttachmentKey, bandwidth: Bandwidth) -> Result<(), Refusal> {
        let Some(known) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let mut changed = known.clone();
        changed.port.bandwidth = bandwidth;
        admit::port(&changed.port)?;
        let set = self.kernel.limit(&changed.port).map_err(Refusal::from);
        let written = set.and_then(|()| Ok(self.store.write(&changed.port)?));
        if let Err(refusal) = written {
            let restored = self.kernel.unlimit(&changed.port, Some(&known.port));
            for error in restored.into_iter().chain(self.kernel.limit(&known.port).err()) {
                tracing::warn!(%key, %error, "the old limits could not be restored");
            }
            return Err(refusal);
        }
        for error in self.kernel.unlimit(&known.port, Some(&changed.port)) {
            tracing::warn!(%key, %error, "a limit could not be taken away");
        }
        changed.others = self.kernel.others(changed.port.host.index)?;
        self.registry.insert(changed.clone());
        self.kernel.write_station(&changed)?;
        tracing::info!(%key, limits = ?changed.port.bandwidth, "limited");
        Ok(())
    }
}
