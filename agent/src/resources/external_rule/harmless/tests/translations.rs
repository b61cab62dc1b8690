//! Chains of translations, as people, engines and plugins have them.

use super::*;

/// What one chain of translations does.
fn harm_in_nat(hook: &str, rules: &str) -> Harm {
    harm_after(&[&format!(
        "nft 'table inet fw {{ chain marking {{ meta mark set 7; }}; chain at {{ type nat hook {hook} priority 0; {rules} }}; }}'"
    )])
}

#[test]
fn translations_between_neighbors_do_harm() {
    for (hook, rules) in [
        ("prerouting", "udp dport 1 redirect to :2;"),
        ("prerouting", "ip daddr 10.77.0.2 udp dport 5001 drop;"),
        ("prerouting", "ip daddr 10.77.0.2 udp dport 7777 dnat ip to 10.77.0.2:5001;"),
        ("prerouting", "fib daddr type != local dnat ip to 10.77.0.2;"),
        ("postrouting", "masquerade;"),
        ("postrouting", "ip saddr 10.77.0.0/24 snat ip to 192.0.2.1;"),
        ("postrouting", "ip saddr 10.77.0.0/24 ip daddr 10.77.0.2 masquerade;"),
        ("postrouting", "meta mark 7 return; masquerade;"),
        ("postrouting", "meta mark & 7 == 0 masquerade;"),
        ("postrouting", "meta mark != 7 masquerade;"),
        ("postrouting", "ip daddr 10.77.0.0/24 udp dport 53 accept; masquerade;"),
        ("postrouting", "ip daddr != 10.78.0.0/16 masquerade;"),
        ("postrouting", "meta mark 7 masquerade; jump marking;"),
        ("postrouting", "oifname \"br0\" masquerade;"),
        ("postrouting", "oifname \"br*\" masquerade;"),
        ("postrouting", "oifname != \"docker0\" masquerade;"),
        ("postrouting", "oifname != \"d*\" masquerade;"),
        ("postrouting", "oifname { \"eth0\", \"br0\" } masquerade;"),
        ("postrouting", "oifname != { \"eth0\", \"eth1\" } masquerade;"),
        ("postrouting", "oifname { \"b*\", \"eth1\" } masquerade;"),
        ("postrouting", "oifname . ip protocol { \"eth0\" . udp } masquerade;"),
        ("postrouting", "oif != 1 masquerade;"),
        ("postrouting", "oif 77 masquerade;"),
        ("postrouting", "iifname != \"br0\" masquerade;"),
        ("prerouting", "iifname \"br0\" udp dport 1 redirect to :2;"),
        ("postrouting", "ip saddr 10.78.0.0/16 ip daddr 10.77.0.0/16 return; masquerade;"),
        ("postrouting", "ip saddr 10.77.0.0/16 ip daddr 10.78.0.0/16 return; masquerade;"),
        ("postrouting", "ip saddr 10.77.0.0/16 ip daddr 10.77.0.0/16 udp dport 53 return; masquerade;"),
        ("postrouting", "ip saddr 10.77.0.0/16 ip daddr != 10.77.0.0/16 return; masquerade;"),
        ("postrouting", "meta nfproto != ipv4 ip daddr 10.77.0.0/16 return; masquerade;"),
    ] {
        let harm = harm_in_nat(hook, rules);
        assert!(is_met_by(&harm, "10.77.0.2"), "{hook} {rules}: {harm:?}");
    }
}

#[test]
fn translations_of_what_leaves_or_of_others_addresses_are_harmless() {
    for (hook, rules) in [
        ("prerouting", "fib daddr type local dnat ip to 10.77.0.2;"),
        ("prerouting", "ip daddr 10.96.0.1 dnat ip to 10.77.0.2;"),
        ("postrouting", "ip daddr != 10.77.0.0/24 masquerade;"),
        ("postrouting", "ip saddr 10.77.0.0/24 ip daddr != 10.77.0.0/24 masquerade;"),
        ("postrouting", "ip daddr 10.77.0.0/24 accept; ip daddr != 224.0.0.0/4 masquerade;"),
        ("postrouting", "ip saddr 172.17.0.0/16 masquerade;"),
        ("postrouting", "ip saddr 10.77.0.2 ip daddr 10.77.0.2 masquerade;"),
        ("postrouting", "ip saddr 127.0.0.1 ip daddr 10.77.0.2 masquerade;"),
        ("postrouting", "meta mark & 0x4000 == 0 return; masquerade;"),
        ("postrouting", "meta mark & 0x2000 == 0x2000 masquerade;"),
        ("postrouting", "meta mark != 7 counter return; meta mark set 0; masquerade;"),
        ("postrouting", "oifname \"eth0\" masquerade;"),
        ("postrouting", "oifname \"eth*\" masquerade;"),
        ("postrouting", "oifname \"br01\" masquerade;"),
        ("postrouting", "oifname != \"br0\" masquerade;"),
        ("postrouting", "oifname { \"eth0\", \"eth1\" } masquerade;"),
        ("postrouting", "oif 1 masquerade;"),
        ("postrouting", "oifname vmap { \"eth0\" : jump marking };"),
        ("prerouting", "iifname \"eth0\" udp dport 1 redirect to :2;"),
        ("prerouting", "iifname \"eth0\" jump marking;"),
        ("postrouting", "ip saddr 10.77.0.0/24 ip daddr 10.77.0.0/16 return; masquerade;"),
        ("postrouting", "ip saddr 10.77.0.0/16 accept; masquerade;"),
        ("postrouting", "meta nfproto ipv4 ip daddr 10.77.0.0/16 return; masquerade;"),
    ] {
        let harm = harm_in_nat(hook, rules);
        assert!(!is_met_by(&harm, "10.77.0.2"), "{hook} {rules}: {harm:?}");
    }
}

const KUBE_PROXY: [&str; 19] = [
    "-N KUBE-SERVICES",
    "-N KUBE-SVC-1",
    "-N KUBE-SEP-1",
    "-N KUBE-NODEPORTS",
    "-N KUBE-MARK-MASQ",
    "-N KUBE-POSTROUTING",
    "-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000",
    "-A KUBE-SEP-1 -s 10.77.0.2/32 -j KUBE-MARK-MASQ",
    "-A KUBE-SEP-1 -p tcp -m tcp -j DNAT --to-destination 10.77.0.2:80",
    "-A KUBE-SVC-1 ! -s 10.77.0.0/16 -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ",
    "-A KUBE-SVC-1 -m statistic --mode random --probability 0.5 -j KUBE-SEP-1",
    "-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-SVC-1",
    "-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-1",
    "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
    "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
    "-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000",
    "-A KUBE-POSTROUTING -j MASQUERADE --random-fully",
    "-A PREROUTING -j KUBE-SERVICES",
    "-A POSTROUTING -j KUBE-POSTROUTING",
];

const REFERENCE: [&str; 15] = [
    "-N CNI-1",
    "-A CNI-1 -d 10.77.0.0/24 -j ACCEPT",
    "-A CNI-1 ! -d 224.0.0.0/4 -j MASQUERADE",
    "-A POSTROUTING -s 10.77.0.2/32 -m comment --comment one -j CNI-1",
    "-N CNI-HOSTPORT-SETMARK",
    "-N CNI-HOSTPORT-MASQ",
    "-N CNI-HOSTPORT-DNAT",
    "-N CNI-DN-1",
    "-A CNI-HOSTPORT-SETMARK -j MARK --or-mark 0x2000",
    "-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE",
    "-A CNI-DN-1 -s 10.77.0.0/24 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK",
    "-A CNI-DN-1 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.77.0.2:80",
    "-A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 8080 -j CNI-DN-1",
    "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
    "-A POSTROUTING -j CNI-HOSTPORT-MASQ",
];

const DOCKER: [&str; 5] = [
    "-N DOCKER",
    "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER",
    "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE",
    "-A DOCKER -i docker0 -j RETURN",
    "-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80",
];

const BY_INTERFACE: [&str; 1] = ["-A POSTROUTING -o eth0 -j MASQUERADE"];

const SWARM: [&str; 2] = [
    "-A POSTROUTING -o docker_gwbridge -m addrtype --src-type LOCAL -j MASQUERADE",
    "-A POSTROUTING -s 172.18.0.0/16 ! -o docker_gwbridge -j MASQUERADE",
];

const FLANNEL: [&str; 8] = [
    "-N FLANNEL-POSTRTG",
    "-A FLANNEL-POSTRTG -m mark --mark 0x4000/0x4000 -m comment --comment flanneld -j RETURN",
    "-A FLANNEL-POSTRTG -s 10.77.0.0/24 -d 10.77.0.0/16 -m comment --comment flanneld -j RETURN",
    "-A FLANNEL-POSTRTG -s 10.77.0.0/16 -d 10.77.0.0/24 -m comment --comment flanneld -j RETURN",
    "-A FLANNEL-POSTRTG ! -s 10.77.0.0/16 -d 10.77.0.0/24 -m comment --comment flanneld -j RETURN",
    "-A FLANNEL-POSTRTG -s 10.77.0.0/16 ! -d 224.0.0.0/4 -m comment --comment flanneld -j MASQUERADE --random-fully",
    "-A FLANNEL-POSTRTG ! -s 10.77.0.0/16 -d 10.77.0.0/16 -m comment --comment flanneld -j MASQUERADE --random-fully",
    "-A POSTROUTING -m comment --comment flanneld -j FLANNEL-POSTRTG",
];

const OLD_FLANNEL: [&str; 3] = [
    "-A POSTROUTING -s 10.77.0.0/16 -d 10.77.0.0/16 -j RETURN",
    "-A POSTROUTING -s 10.77.0.0/16 ! -d 224.0.0.0/4 -j MASQUERADE",
    "-A POSTROUTING ! -s 10.77.0.0/16 -d 10.77.0.0/16 -j MASQUERADE",
];

const KUBE_PROXY_BY_NFT: &str = "nft 'table ip kube-proxy { \
        map services { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.0.1 . tcp . 80 : goto one }; }; \
        set nodes { type ipv4_addr; elements = { 192.0.2.1 }; }; \
        map ports { type inet_proto . inet_service : verdict; elements = { tcp . 30080 : goto one }; }; \
        chain marks { meta mark set meta mark | 0x4000; }; \
        chain endpoint { ip saddr 10.77.0.2 jump marks; meta l4proto tcp dnat to 10.77.0.2:80; }; \
        chain one { ip daddr 10.96.0.1 tcp dport 80 ip saddr != 10.77.0.0/16 jump marks; numgen random mod 1 vmap { 0 : goto endpoint }; }; \
        chain services { ip daddr . meta l4proto . th dport vmap @services; ip daddr @nodes meta l4proto . th dport vmap @ports; }; \
        chain masquerading { meta mark & 0x4000 == 0 return; meta mark set meta mark ^ 0x4000; masquerade fully-random; }; \
        chain nat-prerouting { type nat hook prerouting priority dstnat; jump services; }; \
        chain nat-postrouting { type nat hook postrouting priority srcnat; jump masquerading; }; }'";

#[test]
fn translations_as_engines_and_plugins_have_them_are_harmless() {
    let iptables = |rules: &[&str]| {
        let commands: Vec<_> = rules.iter().map(|rule| format!("iptables-nft -t nat {rule}")).collect();
        harm_after(&commands.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for rules in [&KUBE_PROXY[..], &REFERENCE, &DOCKER, &BY_INTERFACE, &SWARM, &FLANNEL, &OLD_FLANNEL] {
        let harm = iptables(rules);
        assert!(!is_met_by(&harm, "10.77.0.2"), "{rules:?}: {harm:?}");
    }
    assert!(is_met_by(&iptables(&KUBE_PROXY), "10.96.0.1"));
    let harm = harm_after(&[KUBE_PROXY_BY_NFT]);
    assert!(!is_met_by(&harm, "10.77.0.2"), "{harm:?}");
}

#[test]
fn what_passes_elsewhere_counts_for_host_ports() {
    for rules in ["oifname \"eth0\" masquerade;", "oifname \"eth0\" drop;"] {
        let harm = harm_in_nat("postrouting", rules);
        assert!(harm.is_met_in(&Reach::anywhere()), "{rules}: {harm:?}");
    }
}

#[test]
fn the_rules_of_one_ip_translate_nothing_of_the_other() {
    let met = |family: &str, addresses: [&str; 2]| {
        let chain = "chain at { type nat hook postrouting priority 0; masquerade; };";
        let harm = harm_after(&[&format!("nft 'table {family} fw {{ {chain} }}'")]);
        let addresses = addresses.map(|address| address.parse().unwrap()).to_vec();
        harm.is_met_in(&Reach { addresses, ..Reach::default() })
    };
    for (family, addresses, is_met) in [
        ("ip", ["10.77.0.2", "10.77.0.3"], true),
        ("ip", ["fd77::2", "fd77::3"], false),
        ("ip6", ["10.77.0.2", "10.77.0.3"], false),
        ("ip6", ["fd77::2", "fd77::3"], true),
        ("inet", ["fd77::2", "fd77::3"], true),
        ("inet", ["10.77.0.2", "fd77::2"], false),
    ] {
        assert_eq!(met(family, addresses), is_met, "{family} {addresses:?}");
    }
}
