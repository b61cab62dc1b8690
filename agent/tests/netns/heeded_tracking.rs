//! Others' rules that are heeded, and connection tracking, which sees few of a connection's segments: it calls none of them invalid, without any setting
//! of the node's. And changes of rules are heard of, and not only waited for.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use shunt_lab::load::{Placement, cpus, tcp_stream};
use shunt_lab::{Conversation, Path, Protocol, patience};

use crate::heeded::{NOTICED, POLICY, echoes, nft, share, stage, talk, until_heeded};
use crate::heeded_hostile::socket;
use crate::stage::Stage;

/// A policy that counts what connection tracking calls invalid.
const COUNTING: &str = "table inet engine { chain forward { type filter hook forward priority 0; policy drop;
    ct state invalid counter drop; ct state established,related accept; ct state new accept;
    meta l4proto ipv6-icmp accept; }; }";

/// The longest lease: what is heeded sooner was heard of.
const LONG_LEASE: &str = "filters = 'heed'\nfilter_lease = '10s'";

/// How many packets were invalid.
fn invalid(stage: &Stage) -> u64 {
    let listed =
        stage.node.namespace().command("nft", &["list", "chain", "inet", "engine", "forward"]).unwrap();
    let rule = listed.lines().find(|line| line.contains("ct state invalid")).expect("the rule is listed");
    let count = rule.split_whitespace().skip_while(|word| *word != "packets").nth(1);
    count.and_then(|count| count.parse().ok()).expect("it counts packets")
}

#[test]
fn of_a_stream_that_ends_in_each_way_nothing_is_invalid() {
    let stage = stage("filters = 'heed'\nfilter_lease = '100ms'");
    nft(&stage, COUNTING);
    let [one, two, _] = &stage.sandboxes[..] else { unreachable!("three containers") };
    let path =
        |address| Path { client: one.namespace(), server: two.namespace(), address, port: 0, through: None };
    let cpu = cpus().unwrap()[0];
    for address in two.addresses() {
        let fast = share(&stage, "one", || {
            let sample = tcp_stream(path(address), Placement::one(cpu), 2, Duration::from_secs(2)).unwrap();
            println!("{} MB by {address}", sample.operations / 1_000_000);
        });
        assert!(fast > 0.95, "{address}: {fast}");
        let before = stage.node.agent().port("two").unwrap().from.fast;
        reset_after(&stage, address, 256 << 20);
        assert!(stage.node.agent().port("two").unwrap().from.fast > before, "its answers were fast");
    }
    assert_eq!(invalid(&stage), 0);
}

/// A connection of so many bytes that its sender resets, and whose receiver hears of it.
fn reset_after(stage: &Stage, address: std::net::IpAddr, bytes: usize) {
    let [one, two, _] = &stage.sandboxes[..] else { unreachable!("three containers") };
    let listener = two.namespace().enter(|| TcpListener::bind((address, 7100)).unwrap()).unwrap();
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut got = 0;
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return (got, None),
                Ok(read) => got += read,
                Err(error) => return (got, Some(error.kind())),
            }
        }
    });
    let mut sender = one.namespace().enter(|| TcpStream::connect((address, 7100)).unwrap()).unwrap();
    let chunk = vec![7; 1 << 16];
    for _ in 0..bytes / chunk.len() {
        sender.write_all(&chunk).unwrap();
    }
    // Everything has arrived before it is reset.
    thread::sleep(Duration::from_millis(300));
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&sender, nix::sys::socket::sockopt::Linger, &linger).unwrap();
    drop(sender);
    let (got, end) = receiver.join().unwrap();
    assert_eq!((got, end), (bytes, Some(std::io::ErrorKind::ConnectionReset)));
}

#[test]
fn a_thousand_changes_of_rules_lose_nothing_of_a_connection() {
    let stage = stage("filters = 'heed'");
    nft(&stage, COUNTING);
    let echo = &echoes(&stage, 7000)[0];
    let one = &stage.sandboxes[0];
    let mut tcp = talk(one, Protocol::Tcp, echo.address()).unwrap();
    let mut udp = talk(one, Protocol::Udp, echo.address()).unwrap();
    for change in 0..1000 {
        nft(&stage, &format!("delete table inet engine; {COUNTING}"));
        tcp.chat(2, 100).unwrap();
        udp.chat(2, 100).unwrap();
        assert!(change % 100 != 0 || invalid(&stage) == 0, "after {change} changes");
    }
    let fast = share(&stage, "one", || tcp.chat(1000, 100).unwrap());
    assert!(fast > 0.98, "{fast}");
}

/// Has datagrams answered by `to` without a pause, and then no more once `refuse` is done: how long it still answers, in milliseconds.
fn answers_after(stage: &Stage, to: SocketAddr, refuse: impl FnOnce()) -> u128 {
    let one = &stage.sandboxes[0];
    let udp = socket(one, SocketAddr::new(one.addresses()[0], 0), to);
    let mut buffer = [0; 100];
    let mut is_answered = || udp.send(b"hello").is_ok() && udp.recv(&mut buffer).is_ok();
    let fast = share(stage, "one", || assert!((0..500).all(|_| is_answered())));
    assert!(fast > 0.95, "{fast}");
    refuse();
    let done = Instant::now();
    let (mut last, mut missed) = (0, 0);
    while missed < 5 && done.elapsed() < Duration::from_secs(5) {
        match is_answered() {
            true => (last, missed) = (done.elapsed().as_millis(), 0),
            false => missed += 1,
        }
    }
    last
}

#[test]
fn a_change_of_nf_tables_is_heeded_at_once() {
    let stage = stage(LONG_LEASE);
    nft(&stage, POLICY);
    let echo = &echoes(&stage, 7000)[0];
    let mut took = Vec::new();
    for _ in 0..5 {
        let refuse = || nft(&stage, "insert rule inet engine forward meta l4proto udp drop");
        took.push(answers_after(&stage, echo.address(), refuse));
        nft(&stage, &format!("delete table inet engine; {POLICY}"));
    }
    println!("a rule that drops was heeded after {took:?} ms");
    took.sort_unstable();
    assert!(took[2] <= patience(Duration::from_millis(50)).as_millis(), "{took:?} ms");
}

#[test]
fn a_change_of_legacy_iptables_is_heeded_at_once() {
    let stage = stage(LONG_LEASE);
    let node = stage.node.namespace();
    node.command("iptables-legacy", &["-A", "FORWARD", "-p", "udp", "-j", "ACCEPT"]).unwrap();
    let echo = &echoes(&stage, 7000)[0];
    // The first call may have made the lock, which is found some seconds later.
    thread::sleep(Duration::from_secs(6));
    let refuse = || {
        node.command("iptables-legacy", &["-I", "FORWARD", "-p", "udp", "-j", "DROP"]).unwrap();
    };
    let took = answers_after(&stage, echo.address(), refuse);
    println!("a rule of legacy iptables was heeded after {took} ms");
    assert!(took <= patience(Duration::from_millis(500)).as_millis(), "{took} ms");
}

#[test]
fn where_nothing_is_tracked_tcp_is_fast_and_where_zones_are_it_is_the_kernels() {
    let stage = stage("filters = 'heed'");
    nft(
        &stage,
        "table inet engine { chain forward { type filter hook forward priority 0; tcp dport 7001 drop; }; }",
    );
    let echo = &echoes(&stage, 7000)[0];
    let one = &stage.sandboxes[0];
    let chat = || talk(one, Protocol::Tcp, echo.address()).unwrap().chat(20_000, 100).unwrap();
    let fast = share(&stage, "one", chat);
    assert!(fast > 0.9, "nothing is tracked: {fast}");
    nft(
        &stage,
        &format!(
            "delete table inet engine; {COUNTING}; table inet zones {{ chain raw {{ \
             type filter hook prerouting priority raw; tcp dport 7000 ct zone set 7; tcp sport 7000 ct zone set 7; }}; }}"
        ),
    );
    let begun = Instant::now();
    assert!(share(&stage, "one", chat) < 0.05, "it cannot be told of a connection in another zone");
    assert!(begun.elapsed() < Duration::from_secs(5), "it does not stand still");
    assert_eq!(invalid(&stage), 0);
}

#[test]
fn rules_that_judge_each_packet_have_all_of_a_flow() {
    let stage = stage("filters = 'auto'");
    nft(&stage, POLICY);
    let echo = &echoes(&stage, 7000)[0];
    // A conversation that began before the rules may lose a datagram to them: they see its answer first.
    until_heeded(&stage, "one");
    let mut udp = talk(&stage.sandboxes[0], Protocol::Udp, echo.address()).unwrap();
    let fast = |udp: &mut Conversation| share(&stage, "one", || udp.chat(200, 100).unwrap());
    let becomes = |udp: &mut Conversation, is_fast: bool| {
        let begun = Instant::now();
        while (fast(udp) > 0.9) != is_fast {
            assert!(begun.elapsed() < patience(NOTICED), "{}", stage.node.agent().log_tail());
        }
    };
    becomes(&mut udp, true);
    nft(&stage, "insert rule inet engine forward meta length > 1000 drop");
    becomes(&mut udp, false);
    assert!(fast(&mut udp) < 0.05);
    let said = stage.node.agent().status().unwrap().warnings;
    let why = "rule 1 of the chain forward of the table engine asks for meta length";
    assert!(said.iter().any(|said| said.contains(why)), "{said:?}");
    // Each of its packets is judged: the large one is refused at once.
    assert!(udp.say(1200).is_err());
    nft(&stage, &format!("delete table inet engine; {POLICY}"));
    let mut udp = talk(&stage.sandboxes[0], Protocol::Udp, echo.address()).unwrap();
    becomes(&mut udp, true);
    assert_eq!(stage.node.agent().status().unwrap().warnings, Vec::<String>::new());
}
