//! Rule sets as people and tools write them, put into a kernel and read back: which of them vary within a flow, and by what.

use std::process::{Command, Stdio};

use nix::libc;
use nix::sched::{CloneFlags, unshare};

use super::*;
use crate::resources::external_rule::filters::chains;

mod established;

/// What is found after these commands of a shell, in a namespace that goes with its thread.
fn found_after(commands: &[&str]) -> Option<String> {
    std::thread::scope(|scope| {
        let finder = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            for command in commands {
                let done = Command::new("sh").args(["-c", command]).stdout(Stdio::null()).status();
                assert!(done.expect("a shell runs").success(), "{command}");
            }
            let mut chains = chains().unwrap();
            let hooks = [libc::NF_INET_PRE_ROUTING, libc::NF_INET_FORWARD, libc::NF_INET_INGRESS]
                .map(|hook| hook as u32);
            chains.retain(|chain| hooks.contains(&chain.hook));
            first(&chains).unwrap()
        });
        finder.join().unwrap()
    })
}

/// The same of the rules of one chain at `forward`, in nf_tables' language.
fn found_in(rules: &str) -> Option<String> {
    let table = format!(
        "table inet fw {{ chain other {{ limit rate 3/second accept; }}; chain rest {{ tcp dport 80 accept; }}; \
         map ports {{ type inet_service : verdict; elements = {{ 80 : goto rest, 81 : drop }}; }}; \
         map ways {{ type inet_service : verdict; elements = {{ 80 : goto rest, 81 : goto other }}; }}; \
         set paced {{ type ipv4_addr; size 9; limit rate 3/second; elements = {{ 10.0.0.1 limit rate 3/second }}; }}; \
         set counted {{ type ipv4_addr; size 9; counter; elements = {{ 10.0.0.1 counter }}; }}; \
         chain forward {{ type filter hook forward priority 0; policy drop; {rules} }}; }}"
    );
    found_after(&[&format!("nft '{table}'")])
}

#[test]
fn rules_about_who_may_talk_are_steady() {
    for rules in [
        "",
        "ct state established,related accept; ct state invalid drop; tcp dport { 80, 443, 8000-8100 } accept;",
        "ip saddr 10.0.0.0/8 ip daddr @nobody accept;",
        "ip6 saddr fd00::/8 ip6 daddr fd00::1 udp dport 53 counter accept;",
        "iifname \"veth*\" oifname { \"eth0\", \"eth1\" } accept;",
        "meta mark 7 accept; ct mark 8 drop; ct status dnat accept; meta l4proto { icmp, ipv6-icmp } accept;",
        "ip protocol icmp icmp type echo-request accept; ip frag-off & 0x1fff != 0 drop;",
        "tcp flags & (fin|syn|rst|ack) == syn ct state new accept;",
        "tcp flags syn tcp option maxseg size set rt mtu; accept;",
        "tcp dport vmap @ports;",
        "fib saddr type local drop; ether saddr 02:00:00:00:00:01 accept;",
        "tcp dport 22 reject with tcp reset;",
        "tcp option maxseg exists meta mark set 1;",
    ] {
        let rules = rules.replace("@nobody", "10.0.0.1");
        assert_eq!(found_in(&rules), None, "{rules}");
    }
}

#[test]
fn rules_that_judge_each_packet_vary() {
    for (rules, by) in [
        ("limit rate 10/second accept;", "rule 1 of the chain forward of the table fw asks for limit"),
        (
            "tcp dport 80 accept; quota over 10 mbytes drop;",
            "rule 2 of the chain forward of the table fw asks for quota",
        ),
        ("ct count over 10 drop;", "connlimit"),
        ("meta length > 1000 drop;", "meta length"),
        ("ip dscp cs1 drop;", "a payload"),
        ("ip ttl 1 drop;", "a payload"),
        ("ip length > 100 drop;", "a payload"),
        ("@th,160,32 0x1234 drop;", "a payload"),
        ("ip dscp set cs1;", "a payload"),
        ("numgen random mod 2 0 drop;", "numgen"),
        ("ct bytes > 1000 drop;", "ct bytes or packets"),
        ("tcp dport 80 jump other;", "rule 1 of the chain other of the table fw asks for limit"),
        ("tcp dport vmap @ways;", "rule 1 of the chain other"),
        ("ip saddr @paced accept;", "limit of elements of the set paced"),
        ("ip saddr @paced tcp dport 80 drop;", "limit of elements of the set paced"),
        ("meta cpu 0 drop;", "meta cpu"),
        ("tcp option sack exists drop;", "an option of TCP"),
        ("limit rate over 10/second meta mark set 1; meta mark 1 drop;", "limit"),
        ("meta length > 1000 ct mark set 1;", "meta length"),
        ("ip saddr vmap { 1.2.3.4 : drop, * : jump other };", "rule 1 of the chain other"),
    ] {
        let found = found_in(rules).unwrap_or_default();
        assert!(found.contains(by), "{rules}: {found:?}");
    }
}

#[test]
fn what_only_opens_a_flow_may_vary_and_so_may_who_decides_nothing() {
    for rules in [
        "ct state new limit rate 10/second accept;",
        "ct state new tcp dport 80 jump other;",
        "ct state vmap { new : jump other, established : accept, invalid : drop };",
        "limit rate 3/minute log prefix \"seen: \"; drop;",
        "ct state established,related accept; limit rate 10/second accept;",
        "ct state { established, related } accept; quota 3 mbytes accept;",
        "ct state vmap { established : accept, related : accept, invalid : drop }; limit rate 10/second accept;",
        "ct state established counter accept; jump other;",
        "accept; limit rate 3/second drop;",
        "ip saddr @counted accept;",
        "ip saddr @paced counter;",
        "ct state new ip saddr @paced accept;",
    ] {
        assert_eq!(found_in(rules), None, "{rules}");
    }
    for rules in [
        "ct state new,established limit rate 10/second accept;",
        "ct state != new limit rate 10/second accept;",
        "tcp dport 80 ct state established accept; limit rate 10/second accept;",
        "ct state related accept; limit rate 10/second accept;",
        "ct state { new, related } accept; limit rate 10/second accept;",
        "ct state vmap { established : jump other, invalid : drop };",
        "ct state vmap { new : accept, invalid : drop }; limit rate 10/second accept;",
        "ct state established drop; limit rate 10/second accept;",
    ] {
        assert!(found_in(rules).is_some(), "{rules}");
    }
}

#[test]
fn what_is_never_fast_may_vary() {
    for rules in [
        "icmp type echo-request limit rate 3/second accept;",
        "meta l4proto ipv6-icmp limit rate 3/second accept;",
        "ip protocol icmp limit rate 3/second accept;",
        "tcp flags syn limit rate 3/second accept;",
        "tcp flags & (fin|syn|rst|ack) == syn limit rate over 3/second drop;",
        "tcp flags & (fin|syn) == (fin|syn) limit rate 3/second drop;",
    ] {
        assert_eq!(found_in(rules), None, "{rules}");
    }
    for rules in [
        "meta l4proto tcp limit rate 3/second accept;",
        "meta l4proto != icmp limit rate 3/second accept;",
        "tcp flags & (syn|ack) == ack limit rate 3/second accept;",
        "tcp flags & (syn|ack) != 0 limit rate 3/second accept;",
        "tcp flags != syn limit rate 3/second accept;",
    ] {
        assert!(found_in(rules).is_some(), "{rules}");
    }
    let of_bridge = |rules: &str| {
        found_after(&[&format!(
            "nft 'table bridge fw {{ chain forward {{ type filter hook forward priority 0; {rules} }}; }}'"
        )])
    };
    assert_eq!(of_bridge("arp operation request limit rate 3/second accept;"), None);
    assert_eq!(of_bridge("ether type ip6 ip6 saddr fd00::/8 accept; ether type arp drop;"), None);
    assert!(of_bridge("ether type ip limit rate 3/second accept;").is_some());
}

#[test]
fn a_chain_that_some_leave_before_it_accepts_ends_nothing() {
    let found = |chain: &str, first: &str| {
        found_after(&[&format!(
            "nft 'table inet fw {{ chain other {{ tcp dport 80 accept; }}; chain base {{ {chain} ct state established accept; }}; \
             chain forward {{ type filter hook forward priority 0; {first} limit rate 3/second accept; }}; }}'"
        )])
    };
    assert_eq!(found("ct state invalid drop;", "jump base;"), None);
    assert_eq!(found("tcp dport 80 jump other;", "jump base;"), None, "it comes back");
    assert_eq!(found("ct state new return;", "jump base;"), None, "only what opens a flow leaves");
    for chain in [
        "udp dport 5000 return;",
        "udp dport 5000 goto other;",
        "udp dport vmap { 5000 : return };",
        "udp dport vmap { 5000 : goto other };",
    ] {
        assert!(found(chain, "jump base;").is_some(), "{chain}");
        assert_eq!(found(chain, "jump base; ct state established accept;"), None, "{chain}");
    }
}

#[test]
fn a_chain_that_accepts_the_established_ends_what_jumps_to_it() {
    let rules = |first: &str| {
        found_after(&[&format!(
            "nft 'table inet fw {{ chain base {{ ct state established,related accept; }}; chain forward {{ \
             type filter hook forward priority 0; {first} limit rate 3/second accept; }}; }}'"
        )])
    };
    assert_eq!(rules("jump base;"), None);
    assert!(rules("tcp dport 80 jump base;").is_some(), "only some come there");
    assert_eq!(rules("meta mark 0 counter jump base; ct state established accept;"), None);
}

#[test]
fn packets_that_are_not_tracked_are_never_established() {
    let found = |raw: &str, rules: &str| {
        found_after(&[&format!(
            "nft 'table inet fw {{ chain raw {{ type filter hook prerouting priority raw; {raw} }}; \
             chain forward {{ type filter hook forward priority 0; {rules} limit rate 3/second accept; }}; }}'"
        )])
    };
    let established = "ct state established,related accept;";
    assert_eq!(found("udp dport 53 accept;", established), None);
    for raw in ["udp dport 53 notrack;", "iifname \"eth0\" ct state new notrack;"] {
        assert!(found(raw, established).is_some(), "{raw}");
        assert!(found(raw, "ct state { established } accept;").is_some(), "{raw}");
        assert!(found(raw, "ct state vmap { established : accept };").is_some(), "{raw}");
        assert_eq!(found(raw, "accept;"), None, "{raw}");
    }
    let by_iptables = |raw: &str| {
        found_after(&[
            &format!("iptables-nft -t raw -A PREROUTING -p udp {raw}"),
            "iptables-nft -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "iptables-nft -A FORWARD -m limit --limit 3/s -j ACCEPT",
        ])
    };
    assert!(by_iptables("-j CT --notrack").is_some());
    assert!(by_iptables("-j NOTRACK").is_some());
    assert!(by_iptables("-j CT --zone 3").is_some_and(|found| found.ends_with("a zone")));
}

#[test]
fn iptables_nft_is_read_as_well() {
    let found = |rules: &[&str]| {
        let commands: Vec<String> =
            rules.iter().map(|rule| format!("iptables-nft -A FORWARD {rule}")).collect();
        found_after(&commands.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let established = "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT";
    for rules in [
        &["-p tcp --dport 80 -m comment --comment web -j ACCEPT"][..],
        &["-m conntrack --ctstate NEW -m limit --limit 3/s -j ACCEPT"],
        &["-m state --state NEW -m hashlimit --hashlimit-upto 3/s --hashlimit-name n -j ACCEPT"],
        &[established, "-m statistic --mode random --probability 0.5 -j DROP"],
        &["-m limit --limit 3/min -j LOG"],
        &["-m state --state ESTABLISHED,RELATED -j ACCEPT", "-m limit --limit 3/s -j ACCEPT"],
        &["-p icmp -m icmp --icmp-type 8 -m limit --limit 3/s -j ACCEPT"],
        &["-p tcp --syn -m limit --limit 3/s -j ACCEPT"],
        &["-m conntrack --ctstate NEW -j NFQUEUE --queue-num 3"],
        &["-p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu"],
        &["-m mark --mark 0x4000/0x4000 -j ACCEPT", "-j REJECT"],
    ] {
        assert_eq!(found(rules), None, "{rules:?}");
    }
    for (rules, by) in [
        (&["-m limit --limit 3/s -j ACCEPT"][..], "limit"),
        (&["-m length --length 100 -j DROP"], "length"),
        (&["-m limit --limit 3/s -j MARK --set-mark 1", "-m mark --mark 1 -j DROP"], "limit"),
        (&["-p tcp ! --syn -m limit --limit 3/s -j ACCEPT"], "limit"),
        (&["-p tcp --tcp-option 5 -j DROP"], "tcp"),
        (&["-m string --algo bm --string evil -j DROP"], "string"),
        (&["-j NFQUEUE --queue-num 3"], "NFQUEUE"),
        (&["-m statistic --mode random --probability 0.5 -j DROP"], "statistic"),
        (&["-m conntrack ! --ctstate NEW -m limit --limit 3/s -j ACCEPT"], "limit"),
        (
            &[
                "-p tcp --dport 80 -m conntrack --ctstate ESTABLISHED -j ACCEPT",
                "-m quota --quota 100 -j ACCEPT",
            ],
            "quota",
        ),
    ] {
        let found = found(rules).unwrap_or_default();
        assert!(found.contains(by), "{rules:?}: {found:?}");
    }
}

#[test]
fn as_kube_proxy_has_them_they_are_steady() {
    let by_iptables = [
        "iptables-nft -N KUBE-FORWARD",
        "iptables-nft -N KUBE-SERVICES",
        "iptables-nft -A FORWARD -m comment --comment rules -j KUBE-FORWARD",
        "iptables-nft -A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES",
        "iptables-nft -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
        "iptables-nft -A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT",
        "iptables-nft -A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
        "iptables-nft -A KUBE-SERVICES -d 10.96.0.10/32 -p tcp --dport 53 -j REJECT",
        "iptables-nft -t nat -N KUBE-SVC",
        "iptables-nft -t nat -A PREROUTING -j KUBE-SVC",
        "iptables-nft -t nat -A KUBE-SVC -p tcp -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.0.0.1:53",
    ];
    assert_eq!(found_after(&by_iptables), None);
    let by_nft = "nft 'table ip kube-proxy { chain refuse { reject; }; \
        map empty { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.0.10 . tcp . 53 : goto refuse }; }; \
        chain service { numgen random mod 2 vmap { 0 : accept, 1 : accept }; }; \
        chain check { ip daddr . meta l4proto . th dport vmap @empty; }; \
        chain filter-forward { type filter hook forward priority -110; ct state new jump check; }; \
        chain nat-prerouting { type nat hook prerouting priority dstnat; jump service; }; }'";
    assert_eq!(found_after(&[by_nft]), None);
}
