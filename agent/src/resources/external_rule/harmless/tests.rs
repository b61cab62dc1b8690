//! Rule sets as people and tools write them, put into a kernel and read back: what they refuse.

use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, unshare};

use super::*;
use crate::resources::external_rule::filters::chains;

mod translations;

/// What the chains that bridged packets may meet do after these commands of a shell, in a namespace that goes with its thread.
fn harm_after(commands: &[&str]) -> Harm {
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            for command in commands {
                let done = Command::new("sh").args(["-c", command]).stdout(Stdio::null()).status();
                assert!(done.expect("a shell runs").success(), "{command}");
            }
            let mut harm = Harm::default();
            let bridges = Bridges::of([(77, "br0".to_owned())].into_iter());
            for chain in &chains().unwrap() {
                harm.add(&harm_of(chain, &bridges, &mut Kernel::default()).unwrap());
            }
            harm
        });
        reader.join().unwrap()
    })
}

/// The same of the rules of one chain, in nf_tables' language.
fn harm_in(rules: &str) -> Harm {
    let table = format!(
        "table inet fw {{ set few {{ type ipv4_addr; elements = {{ 10.96.0.1, 10.96.0.10 }}; }}; \
         set wide {{ type ipv4_addr; flags interval; elements = {{ 10.96.0.0/16, 10.99.0.1-10.99.0.9 }}; }}; \
         set ports {{ type ipv4_addr . inet_proto . inet_service; elements = {{ 10.96.0.1 . tcp . 80 }}; }}; \
         set ranges {{ type ipv4_addr . inet_service; flags interval; elements = {{ 10.96.0.0/24 . 80-90 }}; }}; \
         set pairs {{ type ipv4_addr . ipv4_addr; elements = {{ 10.96.0.1 . 10.77.0.2 }}; }}; \
         set every {{ type ipv4_addr; flags interval; elements = {{ 0.0.0.0/0 }}; }}; \
         set written {{ type ipv4_addr; flags timeout; timeout 1m; }}; set overwritten {{ type ipv4_addr; }}; \
         chain input {{ type filter hook input priority 0; add @written {{ ip saddr }}; add @overwritten {{ ip saddr }}; }}; \
         set caught {{ type ipv4_addr; flags dynamic,timeout; timeout 1m; }}; \
         chain refuse {{ reject; }}; chain other {{ tcp dport 80 accept; }}; chain base {{ tcp dport 25 drop; }}; \
         chain forward {{ type filter hook forward priority 0; {rules} }}; }}"
    );
    harm_after(&[&format!("nft '{table}'")])
}

/// Whether a container of this address meets it, or a neighbour of its.
fn is_met_by(harm: &Harm, address: &str) -> bool {
    let addresses = [address, "10.77.0.99"].map(|address| address.parse().unwrap()).to_vec();
    harm.is_met_in(&Reach { addresses, ..Reach::default() })
}

#[test]
fn what_refuses_nothing_is_harmless() {
    for rules in [
        "",
        "counter; log prefix \"seen: \"; accept;",
        "tcp dport 80 accept; ct state established,related accept; jump other;",
        "ct state invalid drop; ct state vmap { established : accept, new : jump other };",
        "ct state invalid reject; ip saddr @few accept; meta mark 7 return;",
        "limit rate 3/minute log;",
    ] {
        let harm = harm_in(rules);
        assert!(!harm.is_any(), "{rules}: {harm:?}");
        assert!(!is_met_by(&harm, "10.77.0.2"), "{rules}");
    }
}

#[test]
fn what_refuses_or_changes_something_does_harm() {
    for rules in [
        "tcp dport 25 drop;",
        "jump base;",
        "ct state new goto refuse;",
        "ct state established,invalid drop;",
        "ct state != invalid drop;",
        "ip saddr 10.96.0.1 drop;",
        "ip daddr != 10.96.0.1 drop;",
        "ip daddr != @few drop;",
        "ip saddr @few drop;",
        "ip daddr vmap { 10.96.0.1 : drop, * : drop };",
        "tcp dport vmap { 25 : drop, 80 : accept };",
        "ip daddr != 10.77.0.1 iifname { \"vethA\", \"br0\" } drop;",
        "ip daddr != 10.77.0.1 meta l4proto . th dport { tcp . 25 } drop;",
        "ip daddr 10.77.0.10-10.77.0.20 meta l4proto . th dport { tcp . 25, tcp . 80 } drop;",
        "ip daddr & 255.255.255.0 vmap { 10.77.0.0 : drop };",
        "ip daddr @every drop;",
        "ip daddr @caught drop;",
        "ip daddr @written drop;",
        "ip daddr @overwritten drop;",
        "ip6 daddr fe80::/10 tcp dport 25 drop;",
        "meta mark set 7 ip daddr 10.96.0.1 counter;",
        "meta mark set 7 ct state invalid counter;",
        "meta mark set 7;",
        "ct mark set 7;",
        "tcp option maxseg size set rt mtu;",
        "ip ttl set 3;",
        "notrack;",
    ] {
        let harm = harm_in(rules);
        assert!(is_met_by(&harm, "10.77.0.2"), "{rules}: {harm:?}");
    }
    assert!(is_met_by(
        &harm_after(&[
            "nft 'table ip fw { chain forward { type filter hook forward priority 0; policy drop; accept; }; }'"
        ]),
        "10.77.0.2"
    ));
    assert_eq!(
        harm_in("accept; tcp dport 25 drop;").by.as_deref(),
        Some("rule 2 of the chain forward of the table fw")
    );
}

#[test]
fn what_is_for_groups_or_for_all_but_some_is_met_by_every_container() {
    for rules in [
        "ip daddr 224.0.0.0/4 drop;",
        "ip daddr 239.1.2.3 udp dport 5353 drop;",
        "ip daddr 255.255.255.255 drop;",
        "ip6 daddr ff02::fb drop;",
        "ip daddr != { 10.96.0.1, 10.96.0.2 } drop;",
        "ip daddr != 10.96.0.0/16 drop;",
        "ip daddr 10.96.0.0/16 accept; drop;",
        "ip daddr 10.77.0.2 tcp dport 80 accept; drop;",
        "meta mark 7 accept; drop;",
        "fib saddr type local drop;",
        "fib daddr type unicast drop;",
    ] {
        let harm = harm_in(rules);
        assert!(is_met_by(&harm, "10.77.0.2"), "{rules}: {harm:?}");
    }
}

#[test]
fn what_is_for_other_destinations_is_met_by_these() {
    for (rules, inside, outside) in [
        ("ip daddr 10.96.0.1 drop;", "10.96.0.1", "10.96.0.2"),
        ("ip daddr 10.96.0.0/16 reject;", "10.96.255.255", "10.97.0.0"),
        ("ip daddr 10.96.0.0/12 goto refuse;", "10.111.0.1", "10.112.0.0"),
        ("ip daddr 127.0.0.0/8 ip saddr != 127.0.0.0/8 drop;", "127.0.0.1", "10.77.0.2"),
        ("ip6 daddr fd00:1::/32 drop;", "fd00:1::1", "fd77::2"),
        ("ip daddr . ip saddr @pairs drop;", "10.96.0.1", "10.96.0.2"),
        ("ip daddr @few drop;", "10.96.0.10", "10.96.0.2"),
        ("ip daddr @few jump base;", "10.96.0.1", "10.96.0.2"),
        ("ip daddr @wide drop;", "10.96.7.7", "10.99.0.10"),
        ("ip daddr @wide drop;", "10.99.0.5", "10.98.0.1"),
        ("ip daddr { 10.96.0.0/16, 10.99.0.1 } ct state new drop;", "10.96.7.7", "10.99.0.2"),
        ("ip daddr . meta l4proto . th dport @ports drop;", "10.96.0.1", "10.96.0.2"),
        ("ip daddr . tcp dport @ranges drop;", "10.96.0.200", "10.96.1.0"),
        ("ip daddr vmap { 10.96.0.1 : drop, 10.77.0.2 : accept };", "10.96.0.1", "10.77.0.3"),
        ("ip daddr . tcp dport vmap { 10.96.0.1 . 80 : goto refuse };", "10.96.0.1", "10.77.0.2"),
    ] {
        let harm = harm_in(rules);
        assert_eq!(harm.by, None, "{rules}");
        assert!(is_met_by(&harm, inside), "{rules}: {harm:?}");
        assert!(!is_met_by(&harm, outside), "{rules}: {harm:?}");
    }
    let service = harm_in("ip daddr 10.96.0.1 drop;");
    assert!(
        service.is_met_in(&Reach { is_open: true, ..Reach::default() }),
        "nobody knows whom that reaches"
    );
    let both = harm_in("ip daddr 10.96.0.1 drop; ip daddr 10.97.0.1 drop; ct state invalid drop;");
    assert!(is_met_by(&both, "10.96.0.1") && is_met_by(&both, "10.97.0.1") && !is_met_by(&both, "10.77.0.2"));
}

#[test]
fn as_kube_proxy_has_them_they_are_harmless() {
    let by_iptables = [
        "iptables-nft -N KUBE-FORWARD",
        "iptables-nft -N KUBE-SERVICES",
        "iptables-nft -N KUBE-PROXY-FIREWALL",
        "iptables-nft -N KUBE-FIREWALL",
        "iptables-nft -A FORWARD -m comment --comment rules -j KUBE-FORWARD",
        "iptables-nft -A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES",
        "iptables-nft -A FORWARD -m conntrack --ctstate NEW -j KUBE-PROXY-FIREWALL",
        "iptables-nft -A FORWARD -j KUBE-FIREWALL",
        "iptables-nft -A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name none -j DROP || \
         iptables-nft -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
        "iptables-nft -A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT",
        "iptables-nft -A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
        "iptables-nft -A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment none --dport 53 -j REJECT",
        "iptables-nft -A KUBE-PROXY-FIREWALL -d 192.0.2.1/32 -p tcp --dport 80 -j DROP",
        "iptables-nft -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
    ];
    let by_nft = "nft 'table ip kube-proxy { chain refuse { reject; }; \
        map empty { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.0.10 . tcp . 53 : goto refuse }; }; \
        map firewall { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 192.0.2.1 . tcp . 80 : drop }; }; \
        set clusters { type ipv4_addr; elements = { 10.96.0.10 }; }; \
        chain endpoints { ip daddr . meta l4proto . th dport vmap @empty; }; \
        chain firewalls { ip daddr . meta l4proto . th dport vmap @firewall; }; \
        chain clusters { ip daddr @clusters reject; ip daddr { 10.96.0.0/16 } drop; }; \
        chain filter-forward { type filter hook forward priority -110; ct state new jump endpoints; ct state new jump firewalls; \
        ct state new jump clusters; }; }'";
    for commands in [&by_iptables[..], &[by_nft]] {
        let harm = harm_after(commands);
        assert_eq!(harm.by, None, "{commands:?}");
        for service in ["10.96.0.10", "192.0.2.1"] {
            assert!(is_met_by(&harm, service), "{commands:?}: {harm:?}");
        }
        assert!(!is_met_by(&harm, "10.77.0.2"), "{commands:?}: {harm:?}");
    }
    let forged = [
        "iptables-nft -N KUBE-FORWARD",
        "iptables-nft -A FORWARD -j KUBE-FORWARD",
        "iptables-nft -A KUBE-FORWARD -p tcp --dport 25 -j DROP",
    ];
    assert!(is_met_by(&harm_after(&forged), "10.77.0.2"), "a name is no proof");
}

#[test]
fn more_rules_than_are_read_may_do_anything() {
    struct Endless;
    impl Source for Endless {
        fn rules(
            &mut self,
            _: &TableOf,
            _: &str,
        ) -> Result<Vec<Vec<shunt_netlink::nf_tables::Expression>>, NetlinkError> {
            Ok(vec![Vec::new(); 50_001])
        }

        fn set(&mut self, _: &TableOf, _: &str) -> Result<shunt_netlink::nf_tables::Set, NetlinkError> {
            Ok(shunt_netlink::nf_tables::Set::default())
        }

        fn elements(
            &mut self,
            _: &TableOf,
            _: &str,
        ) -> Result<Vec<shunt_netlink::nf_tables::Element>, NetlinkError> {
            Ok(Vec::new())
        }
    }
    let chain = BaseChain {
        family: libc::NFPROTO_INET as u8,
        hook: libc::NF_INET_FORWARD as u32,
        priority: 0,
        table: "fw".to_owned(),
        name: "forward".to_owned(),
        rules: 1,
        policy: None,
        kind: "filter".to_owned(),
        devices: Vec::new(),
    };
    assert!(is_met_by(&read(&chain, &Bridges::default(), &mut Endless).unwrap(), "10.77.0.2"));
}

#[test]
fn a_rule_for_what_is_marked_does_harm_where_something_marks() {
    let harm = harm_in("meta mark 7 drop;");
    assert!(!is_met_by(&harm, "10.77.0.2") && harm.is_for_marked());
    let harm = harm_in("jump base;");
    assert!(!harm.is_for_marked());
}

#[test]
fn broadcast_addresses_of_containers_subnets_reach_them() {
    let reach = |ip: &str, gateways: &[&str]| {
        let mut reach = Reach::default();
        reach
            .add(&[ip.parse().unwrap()], &gateways.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        reach
    };
    let (known, unknown) = (reach("10.42.1.5", &["10.42.1.1/24"]), reach("10.42.1.5", &[]));
    let met = |rules: &str| [&known, &unknown].map(|reach| harm_in(rules).is_met_in(reach));
    assert_eq!(met("ip daddr 10.42.1.255 drop;"), [true, true]);
    assert_eq!(met("ip daddr 10.42.255.255 drop;"), [false, true]);
    assert_eq!(met("ip daddr 10.43.0.0/16 drop;"), [false, true], "a prefix may be as short as 10.42.0.0/15");
    assert_eq!(met("ip daddr 10.42.1.254 drop;"), [false, false]);
}
