//! Matches and targets of iptables, as iptables-nft has them in rules of nf_tables.

use shunt_netlink::nf_tables::Expression;

use super::attributes::{NFTA_MATCH_NAME, NFTA_MATCH_REV, told};
use super::effect::{Effect, OPTIONS_OF_SYN};
use super::states;

/// Matches whose answer is the same for all packets of a flow, but those that begin and end it.
const STEADY: [&str; 28] = [
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

/// `XT_CT_NOTRACK`, in the lowest byte of `struct xt_ct_target_info`'s flags.
const NOT_TRACKED: u8 = 1;

/// Where a zone and the name of a helper are in `struct xt_ct_target_info` and `_v1` (linux/netfilter/xt_CT.h).
const ZONE: usize = 2;
const HELPER: usize = 12;

/// Whether a target has the packet not tracked.
pub(in super::super) fn untracks(expression: &Expression) -> bool {
    match expression.text(NFTA_MATCH_NAME).as_deref() {
        Some("NOTRACK") => true,
        Some("CT") => told(expression, 0).is_none_or(|flags| flags & NOT_TRACKED != 0),
        _ => false,
    }
}

/// Whether the match `set` asks how many packets or bytes an element has counted (`--packets-gt`): `struct xt_set_info_match_v3` and `_v4`
/// (linux/netfilter/xt_set.h), with what is compared how at these places, 0 for nothing. Earlier ones cannot ask.
fn asks_what_has_passed(expression: &Expression) -> bool {
    let compares = match expression.number(NFTA_MATCH_REV) {
        Some(0..=2) => return false,
        Some(3) => [8, 24],
        _ => [16, 32],
    };
    compares.into_iter().any(|at| told(expression, at) != Some(0))
}

/// What a match makes a rule depend on.
pub(in super::super) fn of_match(expression: &Expression) -> Effect {
    let name = expression.text(NFTA_MATCH_NAME).unwrap_or_default();
    let is_steady = match name.as_str() {
        "tcp" => {
            told(expression, TCP_OPTION).is_some_and(|option| option == 0 || OPTIONS_OF_SYN.contains(&option))
        }
        "set" => !asks_what_has_passed(expression),
        "conntrack" => !states::asks_for_expiry(expression),
        known => STEADY.contains(&known),
    };
    Effect { varies: (!is_steady).then_some(name), acts: false }
}

/// What a target does.
pub(in super::super) fn of_target(expression: &Expression) -> Effect {
    let name = expression.text(NFTA_MATCH_NAME).unwrap_or_default();
    let has_zone = [ZONE, ZONE + 1].iter().any(|at| told(expression, *at) != Some(0));
    let has_helper = told(expression, HELPER) != Some(0);
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
