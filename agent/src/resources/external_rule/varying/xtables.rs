//! Matches and targets of iptables, as iptables-nft has them in rules of nf_tables.

use shunt_netlink::nf_tables::Expression;

use super::effect::{Effect, OPTIONS_OF_SYN};

// linux/netfilter/nf_tables_compat.h
const NAME: u16 = 1;
const INFO: u16 = 3;

/// Matches whose answer is the same for all packets of a flow, but those that begin and end it.
const STEADY: [&str; 29] = [
    "addrtype",
    "cgroup",
    "cluster",
    "comment",
    "connlabel",
    "connmark",
    "dccp",
    "devgroup",
    "helper",
    "icmp",
    "icmp6",
    "iprange",
    "mac",
    "mark",
    "multiport",
    "osf",
    "owner",
    "physdev",
    "pkttype",
    "policy",
    "realm",
    "rpfilter",
    "sctp",
    "set",
    "socket",
    "state",
    "tcpmss",
    "time",
    "udp",
];

/// Targets that let the packet go on as it is, and tell nobody who decides. `TCPMSS` changes what begins a connection.
const SILENT: [&str; 5] = ["AUDIT", "LOG", "NFLOG", "TCPMSS", "TRACE"];

/// Targets that decide, or mark what others decide by, and for the whole flow.
const DECIDING: [&str; 14] = [
    "CLASSIFY",
    "CONNMARK",
    "CONNSECMARK",
    "CT",
    "DNAT",
    "MARK",
    "MASQUERADE",
    "NETMAP",
    "NOTRACK",
    "REDIRECT",
    "REJECT",
    "SECMARK",
    "SET",
    "SNAT",
];

/// Where `struct xt_tcp` (linux/netfilter/xt_tcpudp.h) has the option that it asks for; 0 for none.
const TCP_OPTION: usize = 8;

/// Where `struct xt_conntrack_mtinfo3` (linux/netfilter/xt_conntrack.h) says what it asks for, and `XT_CONNTRACK_EXPIRES` there.
const MATCH_FLAGS: usize = 146;
const ASKS_FOR_EXPIRY: u16 = 1 << 7;

/// `XT_CT_NOTRACK`, in the lowest byte of `struct xt_ct_target_info`'s flags.
const NOT_TRACKED: u8 = 1;

/// Where a zone and the name of a helper are in `struct xt_ct_target_info` and `_v1` (linux/netfilter/xt_CT.h).
const ZONE: usize = 2;
const HELPER: usize = 12;

/// A byte of what a match or a target is told.
fn byte(expression: &Expression, at: usize) -> Option<u8> {
    expression.attribute(INFO)?.get(at).copied()
}

/// Whether a target has the packet not tracked.
pub(super) fn untracks(expression: &Expression) -> bool {
    let flags = || expression.attribute(INFO).and_then(|info| info.first().copied()).unwrap_or(u8::MAX);
    match expression.text(NAME).as_deref() {
        Some("NOTRACK") => true,
        Some("CT") => u16::from(flags()) & u16::from(NOT_TRACKED) != 0,
        _ => false,
    }
}

/// What a match makes a rule depend on.
pub(super) fn of_match(expression: &Expression) -> Effect {
    let name = expression.text(NAME).unwrap_or_default();
    let is_steady = match name.as_str() {
        "tcp" => {
            byte(expression, TCP_OPTION).is_some_and(|option| option == 0 || OPTIONS_OF_SYN.contains(&option))
        }
        "conntrack" => {
            let flags = [MATCH_FLAGS, MATCH_FLAGS + 1].map(|at| byte(expression, at).unwrap_or(u8::MAX));
            u16::from_ne_bytes(flags) & ASKS_FOR_EXPIRY == 0
        }
        known => STEADY.contains(&known),
    };
    Effect { varies: (!is_steady).then_some(name), acts: false }
}

/// What a target does.
pub(super) fn of_target(expression: &Expression) -> Effect {
    let name = expression.text(NAME).unwrap_or_default();
    let has_zone = [ZONE, ZONE + 1].iter().any(|at| byte(expression, *at) != Some(0));
    let has_helper =
        expression.attribute(INFO).is_none_or(|info| info.get(HELPER).is_none_or(|byte| *byte != 0));
    match name.as_str() {
        // Connection tracking is told of connections in the zone 0 only.
        "CT" if has_zone => Effect { varies: Some("a zone".to_owned()), acts: true },
        // A helper reads what is said.
        "CT" if has_helper => Effect { varies: Some("a helper".to_owned()), acts: true },
        known if SILENT.contains(&known) => Effect::default(),
        known if DECIDING.contains(&known) => Effect { varies: None, acts: true },
        _ => Effect { varies: Some(name), acts: true },
    }
}
