//! Whether connection tracking takes it that it misses most segments of a connection.

use std::fs;
use std::path::Path;

/// Where connection tracking has its settings; absent where there is none.
const SETTINGS: &str = "/proc/sys/net/netfilter";

/// Settings that have to be 1. Without the first a segment outside of the window that was seen last is invalid; without the second a RST is, of
/// a connection that has gone on unseen (`tcp_in_window` and `nf_conntrack_tcp_packet`, net/netfilter/nf_conntrack_proto_tcp.c).
const LIBERAL: [&str; 2] = ["nf_conntrack_tcp_be_liberal", "nf_conntrack_tcp_ignore_invalid_rst"];

/// What hinders; none where nothing does.
pub(super) fn hindrance() -> Option<String> {
    let settings = Path::new(SETTINGS);
    if !settings.join("nf_conntrack_max").exists() {
        return None;
    }
    let is_set = |name: &&str| fs::read_to_string(settings.join(name)).is_ok_and(|on| on.trim() == "1");
    let missing: Vec<_> = LIBERAL.into_iter().filter(|name| !is_set(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let names =
        missing.iter().map(|name| format!("net.netfilter.{name}=1")).collect::<Vec<_>>().join(" and ");
    Some(format!(
        "connection tracking takes what it has not seen all of for invalid; allow it with sysctl {names}"
    ))
}
