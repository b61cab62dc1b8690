//! Matches and targets of iptables, as iptables-nft has them in rules of nf_tables.

use shunt_netlink::nf_tables::Expression;

use super::effect::Effect;

// linux/netfilter/nf_tables_compat.h
const NAME: u16 = 1;
const INFO: u16 = 3;

/// Matches whose answer is the same for all packets of a flow, but those that begin and end it.
const STEADY: [&str; 31] = [
    "addrtype",
    "cgroup",
    "cluster",
    "comment",
    "connlabel",
    "connmark",
    "conntrack",
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
    "tcp",
    "tcpmss",
    "time",
    "udp",
];

/// Targets that let the packet go on as it is: they log, mark, or add to a set. `TCPMSS` changes what begins a connection.
const SILENT: [&str; 13] = [
    "AUDIT",
    "CLASSIFY",
    "CONNMARK",
    "CONNSECMARK",
    "CT",
    "LOG",
    "MARK",
    "NFLOG",
    "NOTRACK",
    "SECMARK",
    "SET",
    "TCPMSS",
    "TRACE",
];

/// Targets that decide, and for the whole flow.
const DECIDING: [&str; 6] = ["DNAT", "MASQUERADE", "NETMAP", "REDIRECT", "REJECT", "SNAT"];

/// `XT_CT_NOTRACK`, in the lowest byte of `struct xt_ct_target_info`'s flags.
const NOT_TRACKED: u8 = 1;

/// Where the name of a helper is in `struct xt_ct_target_info` and `_v1` (linux/netfilter/xt_CT.h).
const HELPER: usize = 12;

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
    let varies = (!STEADY.contains(&name.as_str())).then_some(name);
    Effect { varies, acts: false }
}

/// What a target does.
pub(super) fn of_target(expression: &Expression) -> Effect {
    let name = expression.text(NAME).unwrap_or_default();
    let has_helper =
        expression.attribute(INFO).is_none_or(|info| info.get(HELPER).is_none_or(|byte| *byte != 0));
    match name.as_str() {
        // A helper reads what is said.
        "CT" if has_helper => Effect { varies: Some("a helper".to_owned()), acts: true },
        known if SILENT.contains(&known) => Effect::default(),
        known if DECIDING.contains(&known) => Effect { varies: None, acts: true },
        _ => Effect { varies: Some(name), acts: true },
    }
}
