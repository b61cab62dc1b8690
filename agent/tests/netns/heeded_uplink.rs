//! Others' rules are heeded for what a bridge's uplink brings and takes away, too, and what they let through takes the fast path.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Echo, Namespace, Protocol, patience};

use crate::heeded::{NOTICED, POLICY, have_rules_of_ip_met, nft, share_of, until, until_heeded};
use crate::stage::Stage;
use crate::uplinks;

/// Of a host beyond the uplink.
const OUTSIDE: [&str; 2] = ["10.77.0.200", "fd77::200"];

fn stage() -> (Stage, Namespace) {
    let (stage, outside) = stage_by("filters = 'heed'\nfilter_lease = '500ms'");
    nft(&stage, POLICY);
    (stage, outside)
}

/// A container, and a host with addresses beyond the uplink.
fn stage_by(file: &str) -> (Stage, Namespace) {
    let (mut stage, outside) = uplinks::stage_by(file);
    have_rules_of_ip_met(&stage);
    for (address, bits) in OUTSIDE.into_iter().zip(["24", "64"]) {
        outside
            .command("ip", &["address", "add", &format!("{address}/{bits}"), "dev", "eth0", "nodad"])
            .unwrap();
    }
    stage.add("one");
    (stage, outside)
}

/// Echo servers of the host beyond.
fn servers(outside: &Namespace, port: u16) -> Vec<Echo> {
    let listen = |address: &str| Echo::listen(outside, address.parse::<IpAddr>().unwrap(), port).unwrap();
    OUTSIDE.into_iter().map(listen).collect()
}

#[test]
fn what_rules_let_through_is_fast_by_an_uplink_and_what_they_refuse_never_passes() {
    let (stage, outside) = stage();
    let one = &stage.sandboxes[0];
    let inside = |port| one.addresses().into_iter().map(move |address| one.echo(address, port).unwrap());
    let ways = |port| {
        let out = servers(&outside, port).into_iter().map(|echo| (one.namespace(), echo));
        out.chain(inside(port).map(|echo| (&outside, echo))).collect::<Vec<_>>()
    };
    for (from, echo) in ways(7000) {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut talk = Conversation::open(from, protocol, echo.address()).unwrap();
            let fast = share_of(&stage, "one", &mut talk);
            assert!(fast > 0.98, "{protocol:?} with {}: {fast}", echo.address());
        }
    }
    for (from, echo) in ways(7001) {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let talk = Conversation::open(from, protocol, echo.address());
            assert!(
                talk.and_then(|mut talk| talk.chat(1, 100)).is_err(),
                "{protocol:?} with {}",
                echo.address()
            );
        }
    }
}

#[test]
fn a_change_of_rules_ends_what_an_uplink_brings_and_takes_away() {
    let (stage, outside) = stage();
    let one = &stage.sandboxes[0];
    let inside = one.echo(one.addresses()[0], 7000).unwrap();
    let beyond = servers(&outside, 7000);
    let mut talks = [(one.namespace(), &beyond[0]), (&outside, &inside)].map(|(from, echo)| {
        let mut talk = Conversation::open(from, Protocol::Udp, echo.address()).unwrap();
        talk.chat(50, 100).unwrap();
        talk
    });
    nft(&stage, "insert rule inet engine forward meta l4proto udp drop");
    for talk in &mut talks {
        until(talk, false, Duration::from_secs(2));
    }
    nft(&stage, &format!("delete table inet engine; {POLICY}"));
    for talk in &mut talks {
        until(talk, true, NOTICED);
    }
}

#[test]
fn rules_at_the_hooks_of_an_uplink_are_heeded() {
    let (stage, outside) = stage_by("filters = 'auto'");
    let one = &stage.sandboxes[0];
    let inside = one.echo(one.addresses()[0], 7000).unwrap();
    let mut talk = Conversation::open(&outside, Protocol::Udp, inside.address()).unwrap();
    for (hook, rule) in [
        ("ingress", "udp dport 7000 drop"),
        ("egress", "udp sport 7000 drop"),
        ("egress", "ip length > 60 drop"),
    ] {
        talk.chat(50, 10).unwrap();
        nft(
            &stage,
            &format!(
                "table netdev engine {{ chain at {{ type filter hook {hook} device up0 priority 0; {rule}; }}; }}"
            ),
        );
        until_heeded(&stage, "one");
        let judges_each = rule.contains("length");
        until_kept(&stage, judges_each);
        until_size(&mut talk, if judges_each { 100 } else { 10 });
        nft(&stage, "delete table netdev engine");
        until(&mut talk, true, NOTICED);
    }
}

/// Waits until a rule keeps flows with the kernel, or none does.
fn until_kept(stage: &Stage, wanted: bool) {
    let begun = Instant::now();
    while stage.node.agent().status().unwrap().filters.unwrap().kept.is_some() != wanted {
        assert!(begun.elapsed() < patience(NOTICED), "{}", stage.node.agent().log_tail());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until datagrams of this size do not pass.
fn until_size(talk: &mut Conversation, size: usize) {
    let begun = Instant::now();
    while talk.chat(1, size).is_ok() {
        assert!(begun.elapsed() < patience(NOTICED), "datagrams of {size} bytes pass");
    }
}
