//! The agent's directories and files, once nothing that they describe is left: what shunt makes in them goes, and each directory that is
//! empty then. A directory may be anybody's, as flags and the agent's file name any.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use shunt_agent_api::BridgePort;

use super::own_files::{LOCKS, NO_LEASES, SECOND_NAMES, STATE};
use crate::capacity::slice::DRIVER;
use crate::cluster::mark::NETWORK;
use crate::config::Config;
use crate::datapath::pins;
use crate::owned::{Own, Swept, is_in, is_mounted, sweep};
use crate::state::plugin_directories;

/// Where host-local keeps leases unless it is told otherwise.
const LEASES: &str = "/var/lib/cni/networks";

/// How many entries of others are named.
const NAMED: usize = 4;

/// Whether an agent has used the directories.
pub(super) fn are_used(config: &Config) -> bool {
    is_in(&config.state_dir, STATE) || is_in(&config.bpffs, pins::OWN)
}

/// Removes what is the agent's alone, and the lock of the cluster's network where nobody has a lease in it. The state stays while
/// anything is left that it describes. Leases stay: they are the containers'. Says which directories and files stay as they are others'.
pub(super) fn remove(
    config: &Config,
    ports: &[BridgePort],
    is_cluster_network: bool,
    left: &mut Vec<String>,
) -> Vec<String> {
    let mut directories = vec![(config.socket.with_added_extension("locks"), LOCKS)];
    if left.is_empty() {
        left.extend(plugin_directories::forget(&config.state_dir).err().map(|error| error.to_string()));
        directories.extend([(config.bpffs.clone(), pins::OWN), (config.state_dir.clone(), STATE)]);
    }
    let leases = ports.iter().filter_map(|port| port.lease_dir.clone()).chain([PathBuf::from(LEASES)]);
    let leases: BTreeSet<_> = leases.collect();
    directories.extend(leases.iter().map(|leases| (shunt_leases::second_names(leases), SECOND_NAMES)));
    if is_cluster_network {
        directories.extend(unused_network(Path::new(LEASES)).map(|network| (network, NO_LEASES)));
    }
    let mut stays: Vec<_> =
        directories.iter().filter_map(|(directory, own)| remove_own(directory, own, left)).collect();
    if let Some(kubelet) = config.kubernetes.as_ref().and_then(|options| options.kubelet()) {
        // The kubelet's own, if it has others' sockets in it.
        let _in_use = fs::remove_dir(kubelet.join("plugins").join(DRIVER));
    }
    stays.extend(remove_socket(&config.socket, left));
    // Whoever uninstalls need not have the agent's file.
    stays.extend(remove_socket(&config.api.clone().unwrap_or_default().socket, left));
    if let Some(own) = config.socket.parent() {
        // It may have others' sockets in it.
        let _in_use = fs::remove_dir(own);
    }
    stays
}

/// A network's directory of leases, if it has none.
fn unused_network(leases: &Path) -> Option<PathBuf> {
    let network = leases.join(NETWORK);
    shunt_leases::addresses_in(&network).is_ok_and(|held| held.is_empty()).then_some(network)
}

/// Removes what shunt makes in a directory, and the directory if nothing else is in it. A mount and a link are an operator's, and stay
/// without what was in them. Says what stays as it is another's: that is no failure, for no package could be removed beside it.
fn remove_own(directory: &Path, own: &[Own], left: &mut Vec<String>) -> Option<String> {
    let Swept { own, foreign, failed } = sweep(directory, own);
    if !foreign.is_empty() && own == 0 && failed.is_empty() {
        return Some(format!("{} stays: nothing in it is shunt's", directory.display()));
    }
    let is_empty = foreign.is_empty() && failed.is_empty();
    left.extend(failed);
    if is_empty && directory.exists() && !directory.is_symlink() && !is_mounted(directory) {
        left.extend(unless_absent(fs::remove_dir(directory), directory));
    }
    others(directory, &foreign)
}

/// What is said of entries that are none of shunt's.
fn others(directory: &Path, foreign: &[PathBuf]) -> Option<String> {
    let mut names: Vec<_> = foreign.iter().map(|path| path.display().to_string()).collect();
    names.sort();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty())
        .then(|| format!("{}: not shunt's, and not removed: {}{more}", directory.display(), names.join(", ")))
}

/// Removes a socket's file. Says so where the file is no socket, and stays.
fn remove_socket(path: &Path, left: &mut Vec<String>) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.file_type().is_socket() {
        return Some(format!("{} stays: it is no socket", path.display()));
    }
    left.extend(unless_absent(fs::remove_file(path), path));
    None
}

fn unless_absent(removed: io::Result<()>, path: &Path) -> Option<String> {
    let error = removed.err().filter(|error| error.kind() != io::ErrorKind::NotFound)?;
    Some(format!("{}: {error}", path.display()))
}

/// Removes a file; says so if it was there.
pub(super) fn remove_file(path: &Path, left: &mut Vec<String>) -> Option<String> {
    match fs::remove_file(path) {
        Ok(()) => Some(format!("{} removed", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            left.push(format!("{}: {error}", path.display()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use shunt_agent_api::AttachmentKey;

    use super::*;
    use crate::state::Store;

    #[test]
    fn a_networks_directory_goes_where_nobody_has_an_address() {
        let dir = tempfile::tempdir().unwrap();
        let network = dir.path().join(NETWORK);
        fs::create_dir(&network).unwrap();
        for name in ["lock", "last_reserved_ip.0", "10.244.1.2"] {
            fs::write(network.join(name), "c1\r\neth0").unwrap();
        }
        assert_eq!(unused_network(dir.path()), None, "somebody has an address");
        fs::remove_file(network.join("10.244.1.2")).unwrap();
        let mut left = Vec::new();
        for _ in 0..2 {
            let unused = unused_network(dir.path()).unwrap();
            assert_eq!((remove_own(&unused, NO_LEASES, &mut left), network.exists()), (None, false));
        }
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn all_that_agents_write_down_goes_with_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let store = Store::open(&state).unwrap();
        let key = |text: &str| AttachmentKey {
            network: text.into(),
            container: text.repeat(90),
            ifname: "eth0".into(),
        };
        for path in [store.path(&key("pods")), store.path(&key("a.b"))] {
            fs::write(&path, "").unwrap();
            fs::write(path.with_added_extension("unfinished"), "").unwrap();
        }
        for folder in ["claims", "relocations", "networks"] {
            fs::create_dir_all(state.join(folder)).unwrap();
        }
        for file in [
            "probe",
            "departed.json",
            "departed.json.unfinished",
            "cluster.json",
            ".cluster.json.new",
            "cluster.json.shunt-unfinished",
            "quarantine/whatever",
            "claims/4f0c.json",
            "relocations/eth0.json",
            "networks/pods.conflist",
            "networks/.pods.conflist.new",
        ] {
            fs::write(state.join(file), "").unwrap();
        }
        let mut left = Vec::new();
        assert_eq!(remove_own(&state, STATE, &mut left), None);
        assert!(left.is_empty() && !state.exists(), "{left:?}");
    }

    #[test]
    fn what_is_anothers_stays_and_is_named_and_is_no_reason_to_ask_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for directory in ["attachments", "dpkg", "networks"] {
            fs::create_dir(path(directory)).unwrap();
        }
        for file in ["lock", "attachments/a@b@eth0.json", "dpkg/status", "networks/interfaces", "b", "c", "d"]
        {
            fs::write(path(file), "").unwrap();
        }
        let mut left = Vec::new();
        let said = remove_own(dir.path(), STATE, &mut left).unwrap();
        assert!(
            said.contains("/b, ") && said.ends_with("/dpkg and 1 more") && left.is_empty(),
            "{said} {left:?}"
        );
        for file in ["dpkg/status", "networks/interfaces", "b"] {
            assert!(path(file).exists(), "{file}");
        }
        assert!(!path("lock").exists() && !path("attachments").exists());
        let said = remove_own(dir.path(), STATE, &mut left).unwrap();
        assert!(said.ends_with("stays: nothing in it is shunt's") && left.is_empty(), "{said} {left:?}");
    }

    #[test]
    fn a_link_stays_and_so_does_a_file_that_is_no_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("disk")).unwrap();
        fs::write(path("disk/lock"), "").unwrap();
        std::os::unix::fs::symlink(path("disk"), path("state")).unwrap();
        let mut left = Vec::new();
        assert_eq!(remove_own(&path("state"), STATE, &mut left), None);
        assert!(path("state").exists() && !path("disk/lock").exists());
        let listening = UnixListener::bind(path("agent.sock")).unwrap();
        fs::write(path("passwd"), "root").unwrap();
        assert_eq!(remove_socket(&path("agent.sock"), &mut left), None);
        assert!(remove_socket(&path("passwd"), &mut left).is_some());
        assert_eq!((path("agent.sock").exists(), path("passwd").exists()), (false, true));
        assert!(left.is_empty(), "{left:?}");
        drop(listening);
    }
}
