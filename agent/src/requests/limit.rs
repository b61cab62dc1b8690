//! Changes the limits of an attachment while traffic flows.

use shunt_agent_api::{AttachmentKey, Bandwidth, BridgePort};

use super::check::asked_of;
use crate::capacity::Demand;
use crate::datapath::encode;
use crate::resources::change::Change;
use crate::resources::claim::unclaim;
use crate::resources::validation;
use crate::resources::{Node, Refusal};

impl Node {
    /// Changes an attachment's limits, if the uplink's free capacity allows. Queued packets stay queued.
    ///
    /// # Errors
    /// [`Refusal`]; the previous limits are restored as far as the kernel allows.
    pub(crate) fn limit(&mut self, key: &AttachmentKey, bandwidth: Bandwidth) -> Result<(), Refusal> {
        let change = Change::begin("limit");
        let limits = format!("{bandwidth:?}");
        let limited = self.limit_as(key, Some(bandwidth));
        match &limited {
            Ok(()) => change.made(key, limits),
            Err(refusal) => change.refused(key, refusal),
        }
        limited
    }

    /// The same without a line in the log; without limits, those that were asked for before, beside the claims that are left.
    ///
    /// # Errors
    /// As [`Self::limit`].
    pub(super) fn limit_as(&mut self, key: &AttachmentKey, asked: Option<Bandwidth>) -> Result<(), Refusal> {
        let Some(known) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let mut changed = known.clone();
        unclaim(&mut changed.port);
        changed.port = match asked {
            Some(bandwidth) => self.claimed(BridgePort { bandwidth, ..changed.port })?,
            None => self.claimed(changed.port.clone()).unwrap_or(changed.port),
        };
        validation::port(&changed.port)?;
        self.admit_bandwidth(&changed.port)?;
        let set = self.kernel.limit(&changed.port).map_err(Refusal::from);
        let written = set.and_then(|()| Ok(self.store.write(&changed.port)?));
        if let Err(refusal) = written {
            let restored = self.kernel.unlimit(&changed.port, Some(&known.port));
            for error in restored.into_iter().chain(self.kernel.limit(&known.port).err()) {
                tracing::warn!(%key, %error, "cannot restore the previous limits");
            }
            return Err(refusal);
        }
        self.ledger.allocate(key, Demand::from(&changed.port.bandwidth));
        self.registry.insert(changed.clone());
        for error in self.kernel.unlimit(&known.port, Some(&changed.port)) {
            tracing::warn!(%key, %error, "cannot remove a limit");
        }
        changed.external = self.kernel.external(changed.port.host.index)?;
        self.registry.insert(changed.clone());
        self.datapath.rewrite_port(&changed)?;
        for error in self.datapath.erase_subnets(&known, &encode::subnets(&changed)) {
            tracing::warn!(%key, %error, "cannot remove a subnet of the previous limits");
        }
        self.tell_claimed(&changed.port);
        Ok(())
    }

    /// Compares an attachment's limits with the state file and the kernel.
    ///
    /// # Errors
    /// [`Refusal::Altered`] with everything that is missing or altered.
    pub(crate) fn check_limit(&mut self, key: &AttachmentKey, bandwidth: &Bandwidth) -> Result<(), Refusal> {
        let Some(attachment) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let mut findings = self.audit_limits(&attachment)?;
        if attachment.port.bandwidth != *bandwidth && asked_of(&attachment.port) != bandwidth {
            findings.push("it is attached with another bandwidth limit".to_owned());
        }
        if findings.is_empty() { Ok(()) } else { Err(Refusal::Altered { key: key.clone(), findings }) }
    }
}
