//! Notes of what was handed over, for the DEL of a later installation ([`HandedOver`]).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use shunt_agent_api::{AttachmentKey, BridgePort, HandedOver};
use shunt_netlink::link::links;
use shunt_netlink::{Connection, NetlinkError};
use shunt_regular_file::{Outlives, read_own, replace};

/// The notes beside a socket.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    socket: PathBuf,
}

impl Notes {
    pub(super) fn beside(socket: &Path) -> Self {
        Self { socket: socket.to_path_buf() }
    }

    /// What is noted of an attachment, or nothing yet.
    pub(super) fn of(&self, port: &BridgePort) -> HandedOver {
        let empty = || HandedOver {
            key: port.key.clone(),
            host: (port.host.index, port.host.name.clone()),
            host_ports: None,
            masquerading: None,
        };
        read(&HandedOver::path(&self.socket, &port.key))
            .filter(|one| one.key == port.key)
            .unwrap_or_else(empty)
    }

    /// Notes it, before the rules are made.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn put(&self, noted: &HandedOver) -> io::Result<()> {
        fs::create_dir_all(HandedOver::directory(&self.socket))?;
        let path = HandedOver::path(&self.socket, &noted.key);
        // The rules outlive no loss of power either.
        replace(&path, &*serde_json::to_vec(noted)?, 0o600, Outlives::Process)
    }

    /// Removes a note, and the directory behind the last one.
    pub(super) fn take(&self, key: &AttachmentKey) {
        let _absent = fs::remove_file(HandedOver::path(&self.socket, key));
        let _in_use = fs::remove_dir(HandedOver::directory(&self.socket));
    }

    /// Those whose interface is gone.
    ///
    /// # Errors
    /// The links cannot be listed.
    pub(super) fn stale(&self) -> Result<Vec<HandedOver>, NetlinkError> {
        let Ok(entries) = fs::read_dir(HandedOver::directory(&self.socket)) else { return Ok(Vec::new()) };
        let links = Connection::open()?.list(links())?;
        let there: BTreeSet<_> = links.into_iter().map(|link| (link.index, link.name)).collect();
        let paths = entries.flatten().map(|entry| entry.path());
        let noted = paths
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .filter_map(|path| read(&path));
        Ok(noted.filter(|one| !there.contains(&one.host)).collect())
    }
}

fn read(path: &Path) -> Option<HandedOver> {
    serde_json::from_slice(&read_own(path, HandedOver::LONGEST).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_again_and_one_that_cannot_be_written_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Notes::beside(&dir.path().join("agent.sock"));
        let [one, two] = ["one", "two"].map(|container| HandedOver {
            key: AttachmentKey { network: "pods".into(), container: container.into(), ifname: "eth0".into() },
            host: (7, "veth1".into()),
            host_ports: None,
            masquerading: None,
        });
        notes.put(&one).unwrap();
        assert_eq!(read(&HandedOver::path(&notes.socket, &one.key)).as_ref(), Some(&one));
        fs::create_dir(HandedOver::path(&notes.socket, &two.key)).unwrap();
        notes.put(&two).unwrap_err();
        let directory = HandedOver::directory(&notes.socket);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
        fs::remove_dir(HandedOver::path(&notes.socket, &two.key)).unwrap();
        notes.take(&one.key);
        assert!(!directory.exists());
    }
}
