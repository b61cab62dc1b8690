//! The agent's directories and files, once nothing that they describe is left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use shunt_agent_api::BridgePort;

use crate::config::Config;

/// Where host-local keeps leases unless it is told otherwise.
const LEASES: &str = "/var/lib/cni/networks";

/// Removes what is the agent's alone. The state stays while anything is left that it describes. Leases stay: they are the containers'.
pub(super) fn remove(config: &Config, ports: &[BridgePort], with_state: bool) -> Vec<String> {
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
    remove_file(&config.socket, &mut left);
    if let Some(own) = config.socket.parent() {
        // It may have others' sockets in it.
        let _in_use = fs::remove_dir(own);
    }
    left
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
