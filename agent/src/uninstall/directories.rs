//! The agent's directories and files, once nothing that they describe is left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use shunt_agent_api::BridgePort;

use crate::capacity::slice::DRIVER;
use crate::cluster::mark::NETWORK;
use crate::config::Config;

/// Where host-local keeps leases unless it is told otherwise.
const LEASES: &str = "/var/lib/cni/networks";

/// Removes what is the agent's alone, and the lock of the cluster's network where nobody has a lease in it. The state stays while
/// anything is left that it describes. Leases stay: they are the containers'.
pub(super) fn remove(
    config: &Config,
    ports: &[BridgePort],
    is_cluster_network: bool,
    with_state: bool,
) -> Vec<String> {
    let mut left = Vec::new();
    let mut directories = vec![config.socket.with_added_extension("locks")];
    if with_state {
        directories.extend([config.bpffs.clone(), config.state_dir.clone()]);
    }
    let leases = ports.iter().filter_map(|port| port.lease_dir.clone()).chain([PathBuf::from(LEASES)]);
    let leases: BTreeSet<_> = leases.collect();
    directories.extend(leases.iter().map(|leases| shunt_leases::second_names(leases)));
    for directory in directories {
        remove_directory(&directory, &mut left);
    }
    if is_cluster_network {
        remove_unused_network(&Path::new(LEASES).join(NETWORK), &mut left);
    }
    if let Some(kubelet) = config.kubernetes.as_ref().and_then(|options| options.kubelet()) {
        // The kubelet's own, if it has others' sockets in it.
        let _in_use = fs::remove_dir(kubelet.join("plugins").join(DRIVER));
    }
    remove_file(&config.socket, &mut left);
    // Whoever uninstalls need not have the agent's file.
    remove_file(&config.api.clone().unwrap_or_default().socket, &mut left);
    if let Some(own) = config.socket.parent() {
        // It may have others' sockets in it.
        let _in_use = fs::remove_dir(own);
    }
    left
}

/// Removes a network's directory of leases, if it has none.
fn remove_unused_network(network: &Path, left: &mut Vec<String>) {
    if shunt_leases::addresses_in(network).is_ok_and(|held| held.is_empty()) {
        remove_directory(network, left);
    }
}

fn remove_directory(path: &Path, left: &mut Vec<String>) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            left.push(format!("{}: {error}", path.display()));
        }
        _ => {}
    }
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
    use super::*;

    #[test]
    fn a_networks_directory_goes_where_nobody_has_an_address() {
        let dir = tempfile::tempdir().unwrap();
        let network = dir.path().join("shunt");
        fs::create_dir(&network).unwrap();
        for name in ["lock", "last_reserved_ip.0", "10.244.1.2"] {
            fs::write(network.join(name), "c1\r\neth0").unwrap();
        }
        let mut left = Vec::new();
        remove_unused_network(&network, &mut left);
        assert!(network.join("lock").exists(), "somebody has an address");
        fs::remove_file(network.join("10.244.1.2")).unwrap();
        remove_unused_network(&network, &mut left);
        assert!(!network.exists() && left.is_empty(), "{left:?}");
        remove_unused_network(&network, &mut left);
        assert!(left.is_empty(), "{left:?}");
    }
}
