//! What agents and plugins of any version write beside the plugin directory: the kinds of entries that an uninstallation removes.
//!
//! Names are those of the writers. What else is in these directories is not shunt's.

use std::net::IpAddr;

use crate::owned::Own;
use crate::state::UNFINISHED;

/// `attachments`, `relocations` and `claims`: a file each, and what a write that was interrupted has left.
const RECORDS: &[Own] = &[Own::file(|name| name.strip_suffix(UNFINISHED).unwrap_or(name).ends_with(".json"))];

/// `quarantine`: what an agent has put there, by the name that it had.
const PUT_ASIDE: &[Own] = &[Own::file(|_| true)];

/// `networks` of the CNI service.
const NETWORKS: &[Own] =
    &[Own::file(|name| name.strip_suffix(".new").unwrap_or(name).ends_with(".conflist"))];

/// Files of the state directory itself.
const FILES: [&str; 9] = [
    "lock",
    "probe",
    "departed.json",
    "departed.json.unfinished",
    "enlarged.json",
    "enlarged.json.unfinished",
    "cluster.json",
    ".cluster.json.new",
    "cluster.json.shunt-unfinished",
];

/// The state directory.
pub(super) const STATE: &[Own] = &[
    Own::file(|name| FILES.contains(&name)),
    Own::directory(|name| ["attachments", "relocations", "claims"].contains(&name), RECORDS),
    Own::directory(|name| name == "quarantine", PUT_ASIDE),
    Own::directory(|name| name == "networks", NETWORKS),
];

/// The directory of bridges' locks beside the socket: a file for each bridge.
pub(super) const LOCKS: &[Own] = &[Own::file(|_| true)];

/// A network's second names of leases, `CONTAINER/ADDRESS`, and of releases before `ADDRESS@CONTAINER`.
const HOLDERS: &[Own] = &[Own::directory(|_| true, HELD), Own::file(|name| name.contains('@'))];

/// A container's second names of leases.
const HELD: &[Own] = &[Own::file(|name| name.parse::<IpAddr>().is_ok())];

/// The second names of leases of every network.
pub(super) const SECOND_NAMES: &[Own] = &[Own::directory(|_| true, HOLDERS)];

/// A network's directory of leases in which nobody has one.
pub(super) const NO_LEASES: &[Own] =
    &[Own::file(|name| name == "lock" || name.starts_with("last_reserved_ip."))];
