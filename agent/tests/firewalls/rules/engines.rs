//! Rules of the shape of engines' and firewalls'.

use super::{FLUSH, nft};
use crate::queue::Verdict;
use crate::trial::RuleSet;

/// A chain for each container, marks for what a policy allows.
const MARKING: &str = "IPT=nft
both -N ENGINE; both -N POD; both -N POLICY; both -I FORWARD -j ENGINE
for pair in iptables:@two4:@one4 ip6tables:@two6:@one6; do
    program=${pair%%:*}; pair=${pair#*:}
    case $program in iptables) policed=${pair%%:*}; allowed=${pair#*:};; *) policed=@two6; allowed=@one6;; esac
    it=\"$program-nft -w\"
    $it -A ENGINE -d $policed -j POD; $it -A ENGINE -s $policed -j POD
    $it -A ENGINE -m physdev --physdev-is-bridged -d $policed -j POD
    $it -A ENGINE -m mark --mark 0x20000/0x20000 -j ACCEPT
    $it -A POD -m conntrack --ctstate INVALID -j DROP
    $it -A POD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
    $it -A POD -d $policed -m addrtype --src-type LOCAL -j ACCEPT
    $it -A POD -d $policed -j POLICY
    $it -A POD -m mark ! --mark 0x10000/0x10000 -m limit --limit 10/min -j NFLOG --nflog-group 100
    $it -A POD -m mark ! --mark 0x10000/0x10000 -j REJECT
    $it -A POD -j MARK --set-xmark 0/0x10000; $it -A POD -j MARK --set-xmark 0x20000/0x20000
    for protocol in tcp udp; do
        $it -A POLICY -s $allowed -p $protocol --dport 7000 -j MARK --set-xmark 0x10000/0x10000; done
    $it -A POLICY -m mark --mark 0x10000/0x10000 -j RETURN
done";

/// What is new goes to a queue in postrouting, and what is established does not.
const QUEUEING: &str = "IPT=nft
both -t mangle -A POSTROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
both -t mangle -A POSTROUTING -p icmp -j ACCEPT
iptables-nft -w -t mangle -A POSTROUTING -d @two4 -m conntrack --ctstate NEW -j NFQUEUE --queue-num 7
ip6tables-nft -w -t mangle -A POSTROUTING -d @two6 -m conntrack --ctstate NEW -j NFQUEUE --queue-num 7";

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::fast(
        "kube-router's shape",
        MARKING,
        &["IPT=nft; both -F POLICY", "IPT=nft; both -I POD -j DROP", "IPT=nft; both -F ENGINE"],
    ),
    RuleSet::fast("kube-network-policies' shape, allowed", QUEUEING, &[FLUSH]).read_by(Verdict::Accept),
    RuleSet::fast("kube-network-policies' shape, refused", QUEUEING, &[FLUSH]).read_by(Verdict::Refuse),
    RuleSet::fast(
        "firewalld's shape",
        nft!("table inet firewalld { chain mangle { type filter hook prerouting priority mangle; ct state invalid drop; };
            chain filter_FORWARD { type filter hook forward priority filter + 10; policy accept;
                ct state { established, related } accept; ct status dnat accept; iifname \"lo\" accept;
                ct state invalid drop; jump zones; reject with icmpx admin-prohibited; };
            chain zones { iifname \"cni0\" goto zone; goto zone; };
            chain zone { jump deny; jump allow; meta l4proto { icmp, ipv6-icmp } accept; };
            chain deny { ip saddr @three4 drop; }; chain allow { th dport 7000 accept; }; }"),
        &["nft add rule inet firewalld deny ip6 saddr @one6 drop", "nft flush chain inet firewalld filter_FORWARD"],
    ),
    RuleSet::fast(
        "Docker's shape",
        "IPT=legacy; both -N USER; both -N ISOLATION; both -A FORWARD -j USER; both -A FORWARD -j ISOLATION
         both -A FORWARD -o cni0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
         both -A FORWARD -i cni0 ! -o cni0 -j ACCEPT; both -A FORWARD -i cni0 -o cni0 -j ACCEPT
         both -A ISOLATION -i cni0 ! -o cni0 -j RETURN; both -P FORWARD DROP",
        &["iptables-legacy -w -I USER -s @one4 -p udp -j DROP", "iptables-legacy -w -F USER"],
    ),
    RuleSet::fast(
        "Calico's marks",
        nft!("table inet calico { set pods { type ipv4_addr; elements = { @one4, @two4, @three4 }; };
            chain forward { type filter hook forward priority 0; meta mark set meta mark & 0xfff1ffff; ip saddr @pods jump from; ip daddr @pods jump to;
                meta mark & 0x10000 == 0x10000 accept; meta nfproto ipv4 drop; };
            chain from { ct state established,related meta mark set meta mark | 0x10000 return; ct state invalid drop; };
            chain to { meta mark & 0x10000 == 0x10000 return; ip saddr @one4 th dport 7000 meta mark set meta mark | 0x10000; }; }"),
        &["nft delete element inet calico pods '{ @one4 }'", "nft flush chain inet calico to"],
    ),
    RuleSet::fast(
        "a list of addresses that are blocked",
        nft!("table inet block { set bad { type ipv4_addr; flags timeout; elements = { 192.0.2.1, @three4 timeout 1h }; };
            chain pre { type filter hook prerouting priority -200; ip saddr @bad drop; }; }"),
        &["nft add element inet block bad '{ @one4 timeout 1h }'", "nft delete element inet block bad '{ @one4 }'"],
    ),
];
