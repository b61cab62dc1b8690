//! Rules of iptables, of nf_tables' kind and of the legacy one.

use super::FLUSH;
use crate::trial::RuleSet;

/// Connections by ports and states.
macro_rules! allow_list {
    ($kind:literal) => {
        concat!(
            "IPT=",
            $kind,
            "
            both -A FORWARD -m conntrack --ctstate INVALID -j DROP
            both -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
            both -A FORWARD -p tcp -m multiport --dports 7000,7100:7199 -j ACCEPT
            both -A FORWARD -p udp --dport 7000 -j ACCEPT
            iptables-$IPT -w -A FORWARD -p icmp -j ACCEPT
            both -P FORWARD DROP"
        )
    };
}

/// Everything is refused, and then it is not.
macro_rules! refused {
    ($kind:literal) => {
        concat!("IPT=", $kind, "; both -I FORWARD -p udp -j DROP; both -I FORWARD -p tcp -j REJECT")
    };
}
macro_rules! emptied {
    ($kind:literal) => {
        concat!("IPT=", $kind, "; both -P FORWARD ACCEPT; both -F FORWARD")
    };
}

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::fast("iptables-nft: an allow list", allow_list!("nft"), &[refused!("nft"), emptied!("nft")]),
    RuleSet::fast("legacy: an allow list", allow_list!("legacy"), &[refused!("legacy"), emptied!("legacy")]),
    RuleSet::fast(
        "legacy and nft at once",
        "IPT=legacy; both -A FORWARD -p udp --dport 7001 -j DROP; IPT=nft; both -A FORWARD -p tcp --dport 7001 -j REJECT --reject-with tcp-reset",
        &["IPT=legacy; both -A FORWARD -p tcp --dport 7000 -j DROP", emptied!("legacy")],
    ),
    RuleSet::fast(
        "legacy: a port of the bridge",
        "IPT=legacy; both -A FORWARD -m physdev --physdev-in @three -j DROP",
        &["IPT=legacy; both -A FORWARD -m physdev --physdev-in @one --physdev-out @two --physdev-is-bridged -p udp -j DROP"],
    ),
    RuleSet::any(
        "iptables-nft: a port of the bridge and a hardware address",
        "IPT=nft; both -A FORWARD -m physdev --physdev-in @three -p udp -j DROP; both -A FORWARD -m mac --mac-source 02:00:00:00:00:01 -j DROP",
        &[FLUSH],
    ),
    RuleSet::fast(
        "legacy: ranges and kinds of addresses",
        "iptables-legacy -w -A FORWARD -m iprange --src-range @three4-@three4 -j DROP
         iptables-legacy -w -A FORWARD -m addrtype --src-type LOCAL -j DROP
         ip6tables-legacy -w -A FORWARD -s @three6 -j DROP",
        &["iptables-legacy -w -P FORWARD DROP"],
    ),
    RuleSet::fast(
        "legacy: marks of packets and of connections",
        "IPT=legacy; both -t mangle -A PREROUTING -j CONNMARK --restore-mark
         both -t mangle -A PREROUTING -m mark --mark 0 -p udp --dport 7000 -j MARK --set-mark 5
         both -t mangle -A PREROUTING -m mark --mark 0 -p tcp --dport 7000 -j MARK --set-mark 5
         both -t mangle -A PREROUTING -j CONNMARK --save-mark
         both -A FORWARD -m mark --mark 5 -j ACCEPT; both -A FORWARD -j DROP",
        &["IPT=legacy; both -I FORWARD -m connmark --mark 5 -j DROP"],
    ),
    RuleSet::any(
        "legacy: what is not tracked",
        "IPT=legacy; both -t raw -A PREROUTING -p udp -j NOTRACK
         both -A FORWARD -m conntrack --ctstate UNTRACKED -j ACCEPT
         both -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
         both -A FORWARD -p tcp --dport 7000 -j ACCEPT; both -A FORWARD -j DROP",
        &["IPT=legacy; both -t raw -F PREROUTING"],
    ),
    RuleSet::any(
        "iptables-nft: what is not tracked",
        "IPT=nft; both -t raw -A PREROUTING -p tcp -j CT --notrack
         both -A FORWARD -m conntrack --ctstate UNTRACKED -p tcp --dport 7000 -j ACCEPT
         both -A FORWARD -m conntrack --ctstate UNTRACKED -p tcp --sport 7000 -j ACCEPT
         both -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
         both -A FORWARD -p udp --dport 7000 -j ACCEPT; both -A FORWARD -j DROP",
        &["IPT=nft; both -t raw -F PREROUTING"],
    ),
    RuleSet::fast(
        "legacy: what was seen lately",
        "IPT=legacy; both -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
         both -A FORWARD -p udp --dport 7001 -m recent --set --name knocked -j DROP",
        &["IPT=legacy; both -I FORWARD -p udp -m recent --rcheck --name knocked -j DROP"],
    ),
    RuleSet::fast(
        "legacy: chains, logs and returns",
        "IPT=legacy; both -N A; both -N B; both -A FORWARD -j A; both -A A -p udp -j B; both -A A -j NFLOG --nflog-group 3
         both -A B -p udp --dport 7001 -j DROP; both -A B -p udp --dport 7000 -j RETURN; both -A B -j RETURN",
        &["IPT=legacy; both -I B -j DROP"],
    ),
    RuleSet::kept(
        "iptables-nft: a rate",
        "IPT=nft; both -A FORWARD -p udp --dport 7000 -m limit --limit 1/day --limit-burst 40 -j ACCEPT; both -A FORWARD -p udp --dport 7000 -j DROP",
        &[FLUSH],
    ),
    RuleSet::kept("iptables-nft: a quota", "IPT=nft; both -A FORWARD -p udp -m quota --quota 2500 -j ACCEPT; both -A FORWARD -p udp -j DROP", &[FLUSH]),
    RuleSet::kept("iptables-nft: a length", "IPT=nft; both -A FORWARD -m length --length 60 -j DROP", &[FLUSH]),
    RuleSet::kept("iptables-nft: words", "IPT=nft; both -A FORWARD -p udp -m string --algo bm --string 7/1 -j DROP", &[FLUSH]),
    RuleSet::kept("iptables-nft: each third packet", "IPT=nft; both -A FORWARD -p tcp -m statistic --mode nth --every 3 --packet 0 -j DROP", &[FLUSH]),
    RuleSet::kept(
        "iptables-nft: how much has passed",
        "IPT=nft; both -A FORWARD -p udp -m connbytes --connbytes 5: --connbytes-dir both --connbytes-mode packets -j DROP",
        &[FLUSH],
    ),
    RuleSet::kept(
        "iptables-nft: a rate of each address",
        "IPT=nft; both -A FORWARD -p udp -m hashlimit --hashlimit-above 1/hour --hashlimit-burst 20 --hashlimit-mode srcip --hashlimit-name each -j DROP",
        &[FLUSH],
    ),
    RuleSet::kept("iptables-nft: hops that are set", "iptables-nft -w -t mangle -A FORWARD -j TTL --ttl-set 9; ip6tables-nft -w -t mangle -A FORWARD -j HL --hl-set 9", &[FLUSH]),
];
