//! Whether TCP between containers may take the fast path: connection tracking has to take it that it misses most segments of a connection.

use std::fs;
use std::path::Path;

use shunt_dataplane::abi::{HEEDING_EACH_TCP, HEEDING_TCP};

/// Where connection tracking has its settings; absent where there is none.
const SETTINGS: &str = "/proc/sys/net/netfilter";

/// Settings that have to be 1. Without the first a segment outside of the window that was seen last is invalid; without the second a RST is, of
/// a connection that has gone on unseen (`tcp_in_window` and `nf_conntrack_tcp_packet`, net/netfilter/nf_conntrack_proto_tcp.c).
const LIBERAL: [&str; 2] = ["nf_conntrack_tcp_be_liberal", "nf_conntrack_tcp_ignore_invalid_rst"];

/// How connection tracking comes to be liberal of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tracking {
    /// There is none, or it is liberal of all connections by its settings.
    Liberal,
    /// It is told of each connection.
    OfEach,
    /// It is not: TCP stays with the kernel.
    #[default]
    Strict,
}

impl Tracking {
    /// What it is here. Whether it can be told of each connection is asked where that matters.
    pub(super) fn now(can_be_told: impl FnOnce() -> bool) -> Self {
        let settings = Path::new(SETTINGS);
        let is_set = |name: &str| fs::read_to_string(settings.join(name)).is_ok_and(|on| on.trim() == "1");
        if !settings.join("nf_conntrack_max").exists() || LIBERAL.into_iter().all(is_set) {
            Self::Liberal
        } else if can_be_told() {
            Self::OfEach
        } else {
            Self::Strict
        }
    }

    /// As [`shunt_dataplane::abi::Heeding::flags`].
    pub(super) fn flags(self) -> u32 {
        match self {
            Self::Liberal => HEEDING_TCP,
            Self::OfEach => HEEDING_EACH_TCP,
            Self::Strict => 0,
        }
    }

    /// What an operator has to know of it.
    pub(super) fn warning(self) -> Option<String> {
        let settings = LIBERAL.map(|name| format!("net.netfilter.{name}=1")).join(" and ");
        (self == Self::Strict).then(|| {
            format!(
                "TCP between containers stays with the kernel, as others' rules are heeded: connection tracking cannot be told to be liberal of \
                 each connection; have it be liberal of all with sysctl {settings}"
            )
        })
    }
}
