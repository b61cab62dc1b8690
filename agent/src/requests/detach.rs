//! Removes attachments. Every step runs, whether the one before failed or not.

use std::collections::BTreeMap;
use std::path::PathBuf;

use shunt_agent_api::{AttachmentKey, Collected, Detached, Interface};

use crate::datapath::programs;
use crate::resources::Node;
use crate::resources::change::Change;
use crate::resources::delete_in_background;
use crate::resources::host_port::abort_connections_to;

impl Node {
    /// Removes an attachment; there may be none. The `link` is deleted in the background, unless another
    /// attachment uses it.
    pub(crate) fn detach(&mut self, key: &AttachmentKey, link: Option<Interface>) -> Detached {
        let change = Change::begin("detach");
        let goes_with_link =
            link.is_some() && self.registry.get(key).map(|known| &known.port.host) == link.as_ref();
        let mut pins = if goes_with_link { self.abandon_hooks(key) } else { Vec::new() };
        let mut port = self.forget(key, "asked to").inspect(abort_connections_to);
        let unattached = link.as_ref().filter(|link| self.is_unattached(link)).map(|link| link.index);
        // What guards a port without a record goes with its link, and the rest when that is gone.
        if let Some(host) = unattached {
            pins.extend(self.pins_of_unattached(host));
        }
        port = port.or_else(|| self.forget_orphan(key, unattached.is_none()));
        match link {
            Some(link) if unattached.is_some() => {
                self.discard_record(key);
                delete_in_background(link, pins, self.kernel.grace_periods().clone());
            }
            Some(link) if self.is_known(link.index) => {
                tracing::warn!(%key, link = %link.name, "link not deleted: another attachment uses it");
            }
            Some(link) => delete_in_background(link, pins, self.kernel.grace_periods().clone()),
            None => {}
        }
        if port.is_none() {
            change.made(key, "it was not attached");
        }
        Detached { port: port.map(Box::new) }
    }

    fn is_unattached(&self, link: &Interface) -> bool {
        self.unattached.get(&link.index).is_some_and(|port| port.name == link.name)
    }

    /// Removes the record of a container that goes, whatever is wrong with it.
    pub(crate) fn discard_record(&mut self, key: &AttachmentKey) {
        self.store.discard(key);
        let path = self.store.path(key);
        self.unreadable.retain(|file| file.path != path);
    }

    /// Leaves an attachment's programs to the deletion of their link. Returns their pins.
    fn abandon_hooks(&mut self, key: &AttachmentKey) -> Vec<PathBuf> {
        let Some(attachment) = self.registry.get_mut(key) else { return Vec::new() };
        attachment.abandoned = true;
        programs::of_port(attachment).iter().map(|hook| self.datapath.abandon(hook)).collect()
    }

    /// Removes the attachments of `network` that are not in `valid` and do not belong to one of these.
    pub(crate) fn collect(&mut self, network: &str, valid: &[AttachmentKey]) -> Collected {
        let mut parents: BTreeMap<&str, Vec<&AttachmentKey>> = BTreeMap::new();
        for key in valid {
            parents.entry(&key.container).or_default().push(key);
        }
        let stays = |key: &AttachmentKey| {
            parents
                .get(&*key.container)
                .is_some_and(|parents| parents.iter().any(|parent| key.belongs_to(parent)))
        };
        let stale: Vec<_> = self
            .registry
            .attachments()
            .map(|attachment| &attachment.port.key)
            .chain(self.orphaned())
            .filter(|key| key.network == network && !stays(key))
            .cloned()
            .collect();
        let removed = stale.iter().filter_map(|key| {
            self.forget(key, "collected")
                .inspect(abort_connections_to)
                .or_else(|| self.forget_orphan(key, true))
        });
        let removed: Vec<_> = removed.collect();
        tracing::info!(network, removed = removed.len(), "garbage collected");
        Collected { removed }
    }
}
