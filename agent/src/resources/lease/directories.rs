//! Which networks' directories of leases are to be looked at: a lease that is made, removed or replaced gives its directory another stamp.
//!
//! A round through all leases of a directory begins with another stamp, with another edition of the registry, and every few minutes: whoever
//! rewrites a lease in place leaves the stamp as it is. Neither host-local nor the built-in IPAM does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use shunt_agent_api::BridgePort;
use shunt_leases::{Directory, Stamp};

use crate::failpoints;
use crate::registry::Registry;

/// A round takes so many looks; one more, as attachments may come and go meanwhile.
pub(super) const TURNS: usize = 10;

/// The longest time between two rounds.
const LONGEST: Duration = Duration::from_secs(300);

/// Directories by their `dataDir` and their network.
#[derive(Debug, Default)]
pub(super) struct Directories {
    known: BTreeMap<PathBuf, BTreeMap<String, Known>>,
    /// The edition of the registry whose attachments' directories these are.
    edition: Option<u64>,
    /// Looks so far.
    looks: u64,
}

/// What is known of one.
#[derive(Debug, Default)]
struct Known {
    /// What was there at the last look; none where the next change could not be told from it.
    seen: Option<Seen>,
    /// The last look of the round.
    until: u64,
    /// When the round was begun.
    begun: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Directory(Stamp),
}

impl Directories {
    /// Begins rounds where they are due. Whatever is changed after this look begins the next round.
    pub(super) fn look(&mut self, registry: &Registry, clock: SystemTime) {
        self.looks += 1;
        let edition = Some(registry.edition());
        let has_changed = self.edition != edition;
        if has_changed {
            self.edition = edition;
            self.find(registry);
        }
        let now = failpoints::now();
        for (data_dir, networks) in &mut self.known {
            for (network, known) in networks {
                let seen = seen(data_dir, network, clock);
                let is_late = known.begun.is_none_or(|begun| now.duration_since(begun) >= LONGEST);
                if has_changed || is_late || seen.is_none() || known.seen != seen {
                    known.until = self.looks + TURNS as u64;
                    known.begun = Some(now);
                }
                known.seen = seen;
            }
        }
    }

    /// Whether the leases of any are looked at.
    pub(super) fn are_any_due(&self) -> bool {
        self.known.values().flat_map(BTreeMap::values).any(|known| known.until >= self.looks)
    }

    /// Whether an attachment's leases are looked at.
    pub(super) fn is_due(&self, port: &BridgePort) -> bool {
        let networks = port.lease_dir.as_ref().and_then(|data_dir| self.known.get(data_dir));
        let known = networks.and_then(|networks| networks.get(&port.key.network));
        known.is_some_and(|known| known.until >= self.looks)
    }

    /// Finds the directories of all attachments.
    fn find(&mut self, registry: &Registry) {
        let mut former = std::mem::take(&mut self.known);
        for port in registry.attachments().map(|attachment| &attachment.port) {
            let (Some(data_dir), network) = (&port.lease_dir, &port.key.network) else { continue };
            if self.known.get(data_dir).is_some_and(|networks| networks.contains_key(network)) {
                continue;
            }
            let known = former.get_mut(data_dir).and_then(|networks| networks.remove(network));
            let networks = self.known.entry(data_dir.clone()).or_default();
            networks.insert(network.clone(), known.unwrap_or_default());
        }
    }
}

/// What is there, if the next change can be told from it.
fn seen(data_dir: &Path, network: &str, clock: SystemTime) -> Option<Seen> {
    match Directory::open(data_dir, network) {
        Ok(None) => Some(Seen::Nothing),
        Ok(Some(directory)) => {
            directory.stamp().ok().filter(|stamp| stamp.is_settled(clock)).map(Seen::Directory)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;
    use shunt_dataplane::wire::address::Mac;
    use shunt_leases::{Record, Store};

    use super::*;
    use crate::registry::{Attachment, PeerEnd};

    /// A registry of one attachment, whose leases are below `data_dir`.
    fn registry(data_dir: &Path) -> Registry {
        let port: BridgePort = serde_json::from_value(json!({
            "key": { "network": "net", "container": "c1", "ifname": "eth0" },
            "bridge": { "name": "cni0", "index": 1 },
            "host": { "name": "veth1", "index": 2 },
            "mac": "02:00:00:00:00:01",
            "ips": ["10.0.0.2"],
            "mtu": 1500,
            "lease_dir": data_dir,
        }))
        .unwrap();
        let mut registry = Registry::default();
        registry.insert(Attachment::new(port, Mac::default(), 1, PeerEnd::Up));
        registry
    }

    /// Looks once; whether the attachment's leases are looked at then. Each directory has been as it is for long.
    fn is_due(directories: &mut Directories, registry: &Registry) -> bool {
        directories.look(registry, SystemTime::now() + Duration::from_secs(60));
        let due = registry.attachments().map(|attachment| directories.is_due(&attachment.port));
        let is_due = due.collect::<Vec<_>>().contains(&true);
        assert_eq!(is_due, directories.are_any_due());
        is_due
    }

    /// Looks until a round is over; how many looks that were.
    fn round(directories: &mut Directories, registry: &Registry) -> usize {
        (0..100).take_while(|_| is_due(directories, registry)).count()
    }

    #[test]
    fn leases_are_looked_at_for_one_round_after_each_change_and_not_at_all_while_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (mut directories, mut registry) = (Directories::default(), registry(dir.path()));
        let changes: [(&str, &dyn Fn()); 4] = [
            ("nothing is there", &|| {}),
            ("the directory comes", &|| drop(Store::open_or_create(dir.path(), "net").unwrap())),
            ("a lease is made", &|| {
                let store = Store::open_or_create(dir.path(), "net").unwrap();
                store.reserve("10.0.0.2".parse().unwrap(), Record::of("c1", "eth0")).unwrap();
            }),
            ("the directory goes", &|| fs::remove_dir_all(dir.path().join("net")).unwrap()),
        ];
        for (what, change) in changes {
            std::thread::sleep(Duration::from_millis(50));
            change();
            assert_eq!(round(&mut directories, &registry), TURNS + 1, "{what}");
            assert_eq!(round(&mut directories, &registry), 0, "{what}");
        }
        let other = registry.attachments().next().unwrap().clone();
        let other = BridgePort { ips: Vec::new(), ..other.port };
        registry.insert(Attachment::new(other, Mac::default(), 1, PeerEnd::Up));
        assert_eq!(round(&mut directories, &registry), TURNS + 1, "something else is asked for");
        failpoints::advance(LONGEST);
        assert_eq!(round(&mut directories, &registry), TURNS + 1, "nobody has looked for long");
        assert_eq!(round(&mut directories, &registry), 0);
    }

    #[test]
    fn a_directory_that_has_just_changed_is_looked_at_until_the_next_change_would_show() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open_or_create(dir.path(), "net").unwrap());
        let (mut directories, registry) = (Directories::default(), registry(dir.path()));
        for _ in 0..3 * TURNS {
            directories.look(&registry, SystemTime::now());
            assert!(directories.are_any_due());
        }
        assert_eq!(round(&mut directories, &registry), TURNS + 1);
    }
}
