//! Translations as people and tools write them, put into a kernel and read back: which host ports they may take.

use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, unshare};

use super::*;

/// TCP 8000 and 8001 of any address of the node, and UDP 8000 of one.
fn host_ports() -> Vec<HostPort> {
    let [one, other] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap());
    let port = |protocol: i32, port, at: &[IpAddr], said: &str| HostPort {
        protocol: protocol as u8,
        port,
        at: at.to_vec(),
        said: said.to_owned(),
    };
    vec![
        port(libc::IPPROTO_TCP, 8000, &[one, other], "tcp 8000"),
        port(libc::IPPROTO_TCP, 8001, &[one, other], "tcp 8001"),
        port(libc::IPPROTO_UDP, 8000, &[one], "udp 8000"),
    ]
}

/// Who takes which of them after a shell's commands, in a namespace that goes with its thread.
fn taken_after(script: &str) -> BTreeMap<String, Vec<String>> {
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            let done = Command::new("sh").args(["-ec", script]).stdout(Stdio::null()).status();
            assert!(done.expect("a shell runs").success(), "{script}");
            preceded(&host_ports(), &chains().unwrap(), &mut Kernel::default()).unwrap()
        });
        reader.join().unwrap()
    })
}

/// The same of the rules of one chain, in nf_tables' language.
fn taken_by(hook: &str, rules: &str) -> Vec<String> {
    let table = format!(
        "table inet op {{ set few {{ type inet_service; elements = {{ 8001, 9000 }}; }}; \
         chain other {{ dnat ip to 10.0.0.1; }}; chain base {{ type nat hook {hook}; {rules} }}; }}"
    );
    taken_after(&format!("nft '{table}'")).into_values().flatten().collect()
}

#[test]
fn host_ports_that_others_translate_first_are_named() {
    for (rules, taken) in [
        ("dnat ip to 10.0.0.1;", &["tcp 8000", "tcp 8001", "udp 8000"][..]),
        ("tcp dport 8000 dnat ip to 10.0.0.1:80;", &["tcp 8000"]),
        ("tcp dport 8000 redirect to :9;", &["tcp 8000"]),
        ("meta l4proto { tcp, udp } th dport 8000 dnat ip to 10.0.0.1;", &["tcp 8000", "udp 8000"]),
        ("tcp dport 8001-8010 dnat ip to 10.0.0.1;", &["tcp 8001"]),
        ("tcp dport != 8000 dnat ip to 10.0.0.1;", &["tcp 8001"]),
        ("tcp dport @few dnat ip to 10.0.0.1;", &["tcp 8001"]),
        ("tcp dport != @few dnat ip to 10.0.0.1;", &["tcp 8000"]),
        ("dnat ip to tcp dport map { 8000 : 10.0.0.1, 9000 : 10.0.0.2 };", &["tcp 8000"]),
        ("udp dport 8000 jump other;", &["udp 8000"]),
        ("tcp dport vmap { 8001 : goto other, 8000 : accept };", &["tcp 8001"]),
        ("ip daddr 192.0.2.1 udp dport 8000 dnat ip to 10.0.0.1;", &["udp 8000"]),
        ("ip6 daddr 2001:db8::1 th dport 8000 dnat ip6 to fd00::1;", &["tcp 8000"]),
        ("ip daddr 10.96.0.1 tcp dport 8000 dnat ip to 10.0.0.1;", &[]),
        ("tcp dport 9000 dnat ip to 10.0.0.1;", &[]),
        ("tcp dport 8000 accept;", &[]),
    ] {
        for hook in ["prerouting priority -100", "output priority -100"] {
            assert_eq!(taken_by(hook, rules), taken, "{rules}");
        }
    }
}

#[test]
fn chains_that_come_behind_ours_or_translate_sources_take_nothing() {
    let rule = "tcp dport 8000 dnat ip to 10.0.0.1;";
    assert_eq!(taken_by("prerouting priority -79", rule), [""; 0]);
    assert_eq!(taken_by("postrouting priority 100", "masquerade;"), [""; 0]);
}

#[test]
fn iptables_rules_are_named_by_their_chain() {
    let taken = taken_after(
        "iptables-nft -t nat -A PREROUTING -p tcp --dport 8001 -j DNAT --to 10.0.0.1:80
         iptables-nft -t nat -N OWN; iptables-nft -t nat -A OUTPUT -p udp --dport 8000 -j OWN
         iptables-nft -t nat -A OWN -p udp -j REDIRECT --to-ports 9",
    );
    let [before, out] = ["PREROUTING", "OUTPUT"].map(|chain| format!("the chain {chain} of the table nat"));
    let expected = [(before, vec!["tcp 8001".to_owned()]), (out, vec!["udp 8000".to_owned()])];
    assert_eq!(taken, BTreeMap::from(expected));
}
