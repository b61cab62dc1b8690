//! Others' rules for bridged packets are asked for each flow between containers (`filters`). What they let through takes the fast path, and is
//! asked for again while it lasts; what they refuse never passes.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Echo, Protocol, Sandbox, patience};

use crate::stage::Stage;

/// Longer than a lease, and the agent's look at the rules.
pub(crate) const NOTICED: Duration = Duration::from_secs(5);

/// Who may talk: what has begun, and by port 7000.
pub(crate) const POLICY: &str = "table inet engine { chain forward { type filter hook forward priority 0; policy drop;
    ct state invalid drop; ct state established,related accept; meta l4proto { tcp, udp } th dport 7000 accept;
    meta l4proto { icmp, ipv6-icmp } accept; }; }";

/// A node whose agent has this in its file, with three containers, on which bridged packets meet the rules of IP.
pub(crate) fn stage(file: &str) -> Stage {
    let mut stage = Stage::empty_by(file);
    have_rules_of_ip_met(&stage);
    for id in ["one", "two", "three"] {
        stage.add(id);
    }
    stage.node.settle().unwrap();
    stage
}

/// Has bridged packets meet the rules of IP.
pub(crate) fn have_rules_of_ip_met(stage: &Stage) {
    for name in ["iptables", "ip6tables"] {
        let setting = format!("net.bridge.bridge-nf-call-{name}=1");
        stage.node.namespace().command("sysctl", &["-qw", &setting]).unwrap();
    }
}

/// Waits until the agent heeds others' rules at a container.
pub(crate) fn until_heeded(stage: &Stage, id: &str) {
    let begun = Instant::now();
    while stage.node.agent().port(id).unwrap().kernels_way.is_empty() {
        assert!(begun.elapsed() < patience(NOTICED), "{}", stage.node.agent().log_tail());
        sleep(Duration::from_millis(50));
    }
}

pub(crate) fn nft(stage: &Stage, rules: &str) {
    stage.node.namespace().command("nft", &[rules]).unwrap();
}

/// Packets that a container has sent: by the fast path, and by the kernel.
fn sent(stage: &Stage, id: &str) -> (u64, u64) {
    let from = stage.node.agent().port(id).unwrap().from;
    (from.fast, from.kernel)
}

/// The part of what `id` sends meanwhile that takes the fast path.
pub(crate) fn share(stage: &Stage, id: &str, meanwhile: impl FnOnce()) -> f64 {
    let (fast, kernel) = sent(stage, id);
    meanwhile();
    let (now, by_kernel) = sent(stage, id);
    (now - fast) as f64 / (now - fast + by_kernel - kernel).max(1) as f64
}

/// The part of what `id` sends in a conversation that takes the fast path, once connection tracking is liberal of it.
pub(crate) fn share_of(stage: &Stage, id: &str, talk: &mut Conversation) -> f64 {
    talk.chat(20, 1200).unwrap();
    // How long the agent takes to see to that is the machine's business.
    let begun = Instant::now();
    while share(stage, id, || talk.chat(5, 1200).unwrap()) == 0.0 {
        assert!(begun.elapsed() < patience(NOTICED), "nothing is fast");
    }
    share(stage, id, || talk.chat(1000, 1200).unwrap())
}

pub(crate) fn talk(from: &Sandbox, protocol: Protocol, to: SocketAddr) -> Option<Conversation> {
    Conversation::open(from.namespace(), protocol, to).ok()
}

/// Waits until a conversation does as expected.
pub(crate) fn until(conversation: &mut Conversation, goes_on: bool, within: Duration) -> Duration {
    let begun = Instant::now();
    while conversation.chat(1, 100).is_ok() != goes_on {
        assert!(
            begun.elapsed() < patience(within),
            "it {}",
            if goes_on { "stands still" } else { "goes on" }
        );
        sleep(Duration::from_millis(10));
    }
    begun.elapsed()
}

pub(crate) fn echoes(stage: &Stage, port: u16) -> Vec<Echo> {
    let two = &stage.sandboxes[1];
    two.addresses().into_iter().map(|address| two.echo(address, port).unwrap()).collect()
}

/// That a packet of a conversation that was let through is explained as such, and the first of another one as the kernel's.
fn assert_explained(stage: &Stage, protocol: Protocol, to: SocketAddr, from: SocketAddr) {
    let protocol = format!("{protocol:?}").to_lowercase();
    let explain = |packet: &str| {
        let asked = ["--from", "pods/one/eth0", "--packet", packet];
        stage.node.agent().ask_with("explain", &asked).unwrap()
    };
    let later = explain(&format!("{protocol} {to} from {}", from.port()));
    assert_eq!(later["verdict"], "deliver", "{later}");
    assert!(later.to_string().contains("let through from its"), "{later}");
    let first = explain(&format!("{protocol} {to}"));
    assert_eq!((&first["verdict"], &first["reason"]), (&"pass".into(), &"unaccepted".into()), "{first}");
}

#[test]
fn what_rules_let_through_takes_the_fast_path_and_what_they_refuse_never_passes() {
    let stage = stage("filters = 'heed'");
    nft(&stage, POLICY);
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three containers") };
    for echo in echoes(&stage, 7000) {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut talk = talk(one, protocol, echo.address()).unwrap();
            let fast = share_of(&stage, "one", &mut talk);
            assert!(fast > 0.98, "{protocol:?} to {}: {fast}", echo.address());
            assert_explained(&stage, protocol, echo.address(), talk.own_end().unwrap());
        }
    }
    for echo in echoes(&stage, 7001) {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            for who in [one, three] {
                let talk = talk(who, protocol, echo.address());
                assert!(
                    talk.is_none_or(|mut talk| talk.chat(1, 100).is_err()),
                    "{protocol:?} to {}",
                    echo.address()
                );
            }
        }
    }
    // Nor by a flow that was let through the other way round, or from elsewhere.
    let server = one.echo(one.addresses()[0], 7002).unwrap();
    assert!(talk(two, Protocol::Udp, server.address()).unwrap().chat(1, 100).is_err());
    let report = stage.node.agent().port("one").unwrap();
    assert!(report.kernels_way.iter().any(|why| why.contains("others' rules")), "{:?}", report.kernels_way);
    let said = stage.node.agent().status().unwrap().warnings;
    assert_eq!(said, Vec::<String>::new(), "nothing is bypassed");
}

#[test]
fn rules_that_change_are_heeded_within_a_lease_and_lose_nothing_that_they_let_through() {
    let stage = stage("filters = 'heed'\nfilter_lease = '500ms'");
    nft(&stage, POLICY);
    let echoes = echoes(&stage, 7000);
    let open = |protocol| talk(&stage.sandboxes[0], protocol, echoes[0].address()).unwrap();
    let (mut tcp, mut udp) = (open(Protocol::Tcp), open(Protocol::Udp));
    // Replaced at once, as an engine does it, again and again.
    for _ in 0..20 {
        nft(&stage, &format!("delete table inet engine; {POLICY}"));
        tcp.chat(20, 100).unwrap();
        udp.chat(20, 100).unwrap();
    }
    nft(&stage, "insert rule inet engine forward meta l4proto udp drop");
    let stopped = until(&mut udp, false, Duration::from_secs(2));
    tcp.chat(20, 100).unwrap();
    println!("a rule that drops was heeded after {stopped:?}");
    nft(&stage, &format!("delete table inet engine; {POLICY}"));
    until(&mut udp, true, NOTICED);
}

#[test]
fn by_itself_it_heeds_where_somebody_has_rules_and_both_ways_lose_nothing() {
    let stage = stage("filters = 'auto'");
    let [one, ..] = &stage.sandboxes[..] else { unreachable!("three containers") };
    let echo = &echoes(&stage, 7000)[0];
    let heeds = || !stage.node.agent().port("one").unwrap().kernels_way.is_empty();
    let wait = |wanted: bool, talks: &mut [&mut Conversation]| {
        let begun = Instant::now();
        while heeds() != wanted {
            assert!(begun.elapsed() < patience(NOTICED), "{}", stage.node.agent().log_tail());
            for (place, talk) in talks.iter_mut().enumerate() {
                // Of the datagrams, which come second, one may be lost to rules that see an answer first, as by the kernel.
                let said = talk.chat(5, 100);
                assert!(place != 0 || said.is_ok(), "{said:?}");
            }
        }
        talks.iter_mut().for_each(|talk| talk.chat(50, 100).unwrap());
    };
    wait(false, &mut []);
    let (mut tcp, mut udp) = (
        talk(one, Protocol::Tcp, echo.address()).unwrap(),
        talk(one, Protocol::Udp, echo.address()).unwrap(),
    );
    assert!(share(&stage, "one", || tcp.chat(500, 100).unwrap()) > 0.95);
    nft(&stage, POLICY);
    wait(true, &mut [&mut tcp, &mut udp]);
    assert!(share_of(&stage, "one", &mut udp) > 0.95);
    assert!(talk(one, Protocol::Tcp, SocketAddr::new(echo.address().ip(), 7001)).is_none());
    nft(&stage, "delete table inet engine");
    wait(false, &mut [&mut tcp, &mut udp]);
    let mut new = talk(one, Protocol::Udp, echo.address()).unwrap();
    assert!(share(&stage, "one", || new.chat(500, 100).unwrap()) > 0.95);
}

#[test]
fn rules_of_the_bridges_family_are_heeded_for_what_the_node_sends_as_well() {
    let stage = stage("filters = 'auto'");
    let echo = &echoes(&stage, 7000)[0];
    let mut node = Conversation::open(stage.node.namespace(), Protocol::Udp, echo.address()).unwrap();
    node.chat(10, 100).unwrap();
    nft(
        &stage,
        "table bridge engine { chain output { type filter hook output priority 0; udp dport 7000 drop; }; }",
    );
    until(&mut node, false, NOTICED);
    nft(&stage, "delete table bridge engine");
    until(&mut node, true, NOTICED);
}
