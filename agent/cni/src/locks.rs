//! Who waits for whom: calls about one attachment are done one after the other, and a call about a whole network alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Locks that may be kept although nobody has them.
const IDLE: usize = 256;

/// Locks by name: of networks, and of `/NETWORK-CONTAINER-IFNAME`, the attachment's file in the cache, which another one may have, too. No name has a slash.
#[derive(Debug, Default)]
pub(crate) struct Locks(Mutex<HashMap<String, Arc<RwLock<()>>>>);

/// What a call has until it is done.
#[derive(Debug)]
pub(crate) enum Held {
    /// One attachment. No call about the whole network is done meanwhile.
    Attachment {
        /// The network's lock, which other attachments share.
        _network: OwnedRwLockReadGuard<()>,
        /// The attachment's lock.
        _attachment: OwnedRwLockWriteGuard<()>,
    },
    /// A network with all of its attachments.
    Network(
        /// The network's lock.
        #[allow(dead_code, reason = "it is held")]
        OwnedRwLockWriteGuard<()>,
    ),
    /// Nothing.
    Nothing,
}

impl Locks {
    pub(crate) async fn attachment(&self, network: &str, container: &str, ifname: &str) -> Held {
        let _network = self.of(network.to_owned()).read_owned().await;
        let _attachment = self.of(format!("/{network}-{container}-{ifname}")).write_owned().await;
        Held::Attachment { _network, _attachment }
    }

    pub(crate) async fn network(&self, network: &str) -> Held {
        Held::Network(self.of(network.to_owned()).write_owned().await)
    }

    fn of(&self, name: String) -> Arc<RwLock<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() >= IDLE {
            // Nobody gets at a lock meanwhile: the map is locked.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Arc::clone(locks.entry(name).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn an_attachment_waits_for_itself_and_for_its_network() {
        let locks = Locks::default();
        let held = locks.attachment("net", "a", "eth0").await;
        let _other = locks.attachment("net", "b", "eth0").await;
        assert!(timeout(MOMENT, locks.attachment("net", "a", "eth0")).await.is_err());
        assert!(timeout(MOMENT, locks.network("net")).await.is_err());
        drop((held, _other));
        let whole = locks.network("net").await;
        assert!(timeout(MOMENT, locks.attachment("net", "a", "eth0")).await.is_err());
        let _elsewhere = locks.attachment("other", "a", "eth0").await;
        drop(whole);
        let _again = locks.attachment("net", "a", "eth0").await;
    }

    #[tokio::test]
    async fn attachments_whose_files_have_one_name_wait_for_each_other() {
        let locks = Locks::default();
        let held = locks.attachment("a", "b-c", "eth0").await;
        assert!(timeout(MOMENT, locks.attachment("a-b", "c", "eth0")).await.is_err());
        drop(held);
        let _other = locks.attachment("a-b", "c", "eth0").await;
    }

    #[tokio::test]
    async fn locks_that_nobody_has_are_few() {
        let locks = Locks::default();
        for number in 0..10 * IDLE {
            drop(locks.attachment("net", &number.to_string(), "eth0").await);
        }
        assert!(locks.0.lock().unwrap().len() <= IDLE + 1);
    }
}
