//! Others' rules that are heeded (`filters`), for attackers and for agents that start again: nothing passes that they refuse, nothing is lost that they let
//! through, and no flow stays with the kernel that need not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Conversation, Echo, Protocol, Sandbox, patience};

use crate::entries::fill;
use crate::heeded::{NOTICED, POLICY, echoes, nft, share, share_of, stage, talk, until};
use crate::stage::Stage;

fn restart(stage: &mut Stage, file: &str) {
    fs::write(stage.lab.root().join("agent.toml"), file).unwrap();
    stage.node.agent_mut().terminate().unwrap();
    stage.node.restart_agent().unwrap();
}

/// A socket of the container with this source, and answers within a moment.
pub(crate) fn socket(sandbox: &Sandbox, source: SocketAddr, to: SocketAddr) -> UdpSocket {
    let socket = sandbox.namespace().enter(|| UdpSocket::bind(source).unwrap()).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

/// How many of so many datagrams were answered.
fn answered(socket: &UdpSocket, datagrams: usize) -> usize {
    let mut buffer = [0; 100];
    (0..datagrams).filter(|_| socket.send(b"hello").is_ok() && socket.recv(&mut buffer).is_ok()).count()
}

fn heard_by_node(stage: &Stage) -> (Conversation, Echo) {
    let echo = echoes(stage, 7000).remove(0);
    let mut node = Conversation::open(stage.node.namespace(), Protocol::Udp, echo.address()).unwrap();
    node.chat(10, 100).unwrap();
    (node, echo)
}

#[test]
fn rules_of_the_bridges_postrouting_are_heeded_for_what_the_node_sends() {
    let stage = stage("filters = 'auto'");
    let (mut node, _echo) = heard_by_node(&stage);
    nft(
        &stage,
        "table bridge engine { chain out { type filter hook postrouting priority 0; udp dport 7000 drop; }; }",
    );
    sleep(NOTICED);
    until(&mut node, false, NOTICED);
}

#[test]
fn rules_of_a_host_ends_egress_are_heeded_for_what_the_node_sends() {
    let stage = stage("filters = 'auto'");
    let (mut node, _echo) = heard_by_node(&stage);
    let two = stage.node.agent().port("two").unwrap().host_ifname;
    nft(
        &stage,
        &format!(
            "table netdev engine {{ chain out {{ type filter hook egress device {two} priority 0; udp dport 7000 drop; }}; }}"
        ),
    );
    sleep(NOTICED);
    until(&mut node, false, NOTICED);
}

/// What a node has that firewalls itself only: connection tracking is on.
const OWN: &str =
    "table inet own { chain in { type filter hook input priority 0; ct state established accept; }; }";

#[test]
fn a_flow_is_fast_again_after_rules_came_and_went() {
    let stage = stage("filters = 'auto'");
    let echo = &echoes(&stage, 7000)[0];
    let mut flows =
        [Protocol::Tcp, Protocol::Udp].map(|it| talk(&stage.sandboxes[0], it, echo.address()).unwrap());
    let heeds = || !stage.node.agent().port("one").unwrap().kernels_way.is_empty();
    let wait = |wanted: bool| {
        let begun = Instant::now();
        while heeds() != wanted {
            assert!(begun.elapsed() < NOTICED);
            sleep(Duration::from_millis(50));
        }
    };
    wait(false);
    nft(&stage, POLICY);
    wait(true);
    for flow in &mut flows {
        flow.chat(50, 100).unwrap();
    }
    nft(&stage, "delete table inet engine");
    wait(false);
    sleep(Duration::from_secs(3));
    let shares = flows.each_mut().map(|flow| share(&stage, "one", || flow.chat(300, 100).unwrap()));
    assert!(shares.iter().all(|share| *share > 0.9), "{shares:?}");
}

#[test]
fn a_flow_is_fast_again_after_a_restart_without_others_rules() {
    let mut stage = stage("filters = 'auto'");
    nft(&stage, OWN);
    let echo = echoes(&stage, 7000).remove(0);
    let mut flows =
        [Protocol::Tcp, Protocol::Udp].map(|it| talk(&stage.sandboxes[0], it, echo.address()).unwrap());
    sleep(Duration::from_secs(3));
    stage.node.agent_mut().terminate().unwrap();
    thread::scope(|scope| {
        let talks = scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(6);
            while Instant::now() < until {
                flows.iter_mut().for_each(|flow| flow.chat(5, 100).unwrap());
            }
        });
        stage.node.restart_agent().unwrap();
        talks.join().unwrap();
    });
    let shares = flows.each_mut().map(|flow| share(&stage, "one", || flow.chat(300, 100).unwrap()));
    assert!(shares.iter().all(|share| *share > 0.9), "{shares:?}");
}

#[test]
fn a_translated_flow_outlives_a_restart_with_another_mode() {
    let mut stage = stage("filters = 'heed'");
    let echo = echoes(&stage, 7000).remove(0);
    nft(&stage, POLICY);
    nft(
        &stage,
        &format!(
            "table ip nat {{ chain pre {{ type nat hook prerouting priority -100; ip daddr 10.96.0.1 udp dport 80 dnat to {}; }}; }}",
            echo.address()
        ),
    );
    let service: SocketAddr = "10.96.0.1:80".parse().unwrap();
    let mut udp = talk(&stage.sandboxes[0], Protocol::Udp, service).unwrap();
    udp.chat(50, 100).unwrap();
    for mode in ["bypass", "auto", "bypass", "heed"] {
        restart(&mut stage, &format!("filters = '{mode}'"));
        udp.chat(100, 100).unwrap_or_else(|error| panic!("{mode}: {error:#}"));
        sleep(Duration::from_millis(1500));
        udp.chat(100, 100).unwrap_or_else(|error| panic!("{mode}, later: {error:#}"));
    }
}

#[test]
fn a_neighbour_who_speaks_as_another_does_not_take_its_flow_off_the_fast_path() {
    let stage = stage("filters = 'heed'");
    nft(&stage, POLICY);
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!() };
    let echo = &echoes(&stage, 7000)[0];
    let [own, others] = [one, two].map(|it| it.addresses()[0]);
    let flow = socket(one, SocketAddr::new(own, 5555), echo.address());
    answered(&flow, 20);
    let fast = share(&stage, "one", || assert_eq!(answered(&flow, 200), 200));
    assert!(fast > 0.9);
    let mac = two.namespace().command("ip", &["-br", "link", "show", "eth0"]).unwrap();
    let mac = mac.split_whitespace().find(|word| word.matches(':').count() == 5).unwrap().to_owned();
    three
        .namespace()
        .command("ip", &["neigh", "replace", &others.to_string(), "lladdr", &mac, "dev", "eth0"])
        .unwrap();
    three.namespace().command("ip", &["address", "add", &format!("{own}/32"), "dev", "lo"]).unwrap();
    let forged = socket(three, SocketAddr::new(own, 5555), echo.address());
    forged.send(b"forged").unwrap();
    sleep(Duration::from_secs(2));
    let fast = share(&stage, "one", || {
        answered(&flow, 200);
    });
    assert!(fast > 0.9, "one forged datagram: {fast}");
}

/// What rules of the table `engine` refuse does not pass, or `status` names them.
fn assert_refused_or_named(stage: &Stage, sandbox: &Sandbox, echo: &Echo) {
    let passed = answered(&socket(sandbox, SocketAddr::new(sandbox.addresses()[0], 0), echo.address()), 50);
    let said = stage.node.agent().status().unwrap().warnings;
    assert!(
        passed == 0 || said.iter().any(|said| said.contains("engine")),
        "{passed} of 50 passed; {said:?}"
    );
}

#[test]
fn status_names_rules_that_traffic_of_vlans_bypasses() {
    let mut stage = stage("filters = 'auto'");
    stage.network = stage.network.clone().with("isDefaultGateway", json!(false)).with("vlan", json!(10));
    stage.add("four");
    stage.add("five");
    let four = stage.node.agent().port("four").unwrap().host_ifname;
    nft(
        &stage,
        &format!(
            "table netdev engine {{ chain in {{ type filter hook ingress device {four} priority 0; udp dport 7000 drop; }}; }}"
        ),
    );
    sleep(NOTICED);
    let (four, five) = (&stage.sandboxes[3], &stage.sandboxes[4]);
    let echo = five.echo(five.addresses()[0], 7000).unwrap();
    assert_refused_or_named(&stage, four, &echo);
}

#[test]
fn rules_for_arp_are_heeded_or_status_names_them() {
    let stage = stage("filters = 'heed'");
    nft(
        &stage,
        "table bridge engine { chain forward { type filter hook forward priority 0; ether type arp drop; }; }",
    );
    sleep(NOTICED);
    let [one, ..] = &stage.sandboxes[..] else { unreachable!() };
    let echo = echoes(&stage, 7000).remove(0);
    assert_refused_or_named(&stage, one, &echo);
}

/// A half-closed connection goes on in the other direction for as long as it takes.
#[test]
fn a_half_closed_connection_goes_on() {
    let stage = stage("filters = 'heed'");
    nft(&stage, POLICY);
    let [one, two, _] = &stage.sandboxes[..] else { unreachable!() };
    let address = SocketAddr::new(two.addresses()[0], 7000);
    let listener = two.namespace().enter(|| TcpListener::bind(address).unwrap()).unwrap();
    let mut client = one.namespace().enter(|| TcpStream::connect(address).unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let mut buffer = [0; 1000];
    for _ in 0..100 {
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut buffer).unwrap();
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let fast = share(&stage, "two", || {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(4) {
            server.write_all(&[7; 1000]).unwrap();
            client.read_exact(&mut buffer).unwrap();
        }
    });
    assert!(fast > 0.9, "{fast}");
}

/// Rules that come while the agent is down are heeded by an agent that starts, from its first packet; by "heed" also without one.
#[test]
fn rules_are_heeded_while_there_is_no_agent() {
    let mut stage = stage("filters = 'heed'");
    nft(&stage, POLICY);
    let echo = echoes(&stage, 7000).remove(0);
    let mut udp = talk(&stage.sandboxes[0], Protocol::Udp, echo.address()).unwrap();
    udp.chat(20, 100).unwrap();
    stage.node.agent_mut().kill().unwrap();
    udp.chat(200, 100).unwrap();
    nft(&stage, "insert rule inet engine forward meta l4proto udp drop");
    stage.node.restart_agent().unwrap();
    sleep(Duration::from_millis(1500));
    assert!(udp.chat(1, 100).is_err());
}

/// Both ends of a flow are heeded by the time that either is: no flow of the fast path becomes the kernel's for good.
#[test]
fn a_busy_flow_is_fast_again_after_a_restart_with_rules() {
    let mut stage = stage("filters = 'bypass'");
    nft(&stage, POLICY);
    let echo = echoes(&stage, 7000).remove(0);
    let mut udp = talk(&stage.sandboxes[0], Protocol::Udp, echo.address()).unwrap();
    for mode in ["heed", "bypass", "heed"] {
        restart(&mut stage, &format!("filters = '{mode}'"));
        udp.chat(100, 100).unwrap();
        sleep(Duration::from_secs(2));
        udp.chat(10, 100).unwrap();
        let fast = share(&stage, "one", || udp.chat(300, 100).unwrap());
        assert!(fast > 0.9, "{mode}: {fast}");
    }
    let fast = share(&stage, "one", || udp.chat(300, 100).unwrap());
    assert!(fast > 0.9, "{fast}");
}

/// By more than a lease: the kernel is asked again and again.
fn go_on(talks: &mut [Conversation], time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        talks.iter_mut().for_each(|talk| talk.chat(10, 100).unwrap());
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn where_connection_tracking_is_full_nothing_new_passes_and_what_has_begun_goes_on() {
    let stage = stage("filters = 'heed'");
    nft(&stage, POLICY);
    let [one, ..] = &stage.sandboxes[..] else { unreachable!("three containers") };
    let echo = &echoes(&stage, 7000)[0];
    let mut begun =
        [Protocol::Tcp, Protocol::Udp].map(|protocol| talk(one, protocol, echo.address()).unwrap());
    begun.iter_mut().for_each(|talk| assert!(share_of(&stage, "one", talk) > 0.98));
    // Datagrams are assured two seconds after the first (`nf_conntrack_udp_packet`): before that any flow may take their room.
    go_on(&mut begun, Duration::from_secs(4));
    thread::scope(|scope| {
        let filling = scope.spawn(|| fill(stage.node.namespace(), &stage.lab.root().join("entries")));
        let begun_at = Instant::now();
        while !filling.is_finished() {
            assert!(
                begun_at.elapsed() < patience(Duration::from_secs(60)),
                "connection tracking is not full yet"
            );
            go_on(&mut begun, Duration::from_millis(50));
        }
    });
    go_on(&mut begun, Duration::from_secs(3));
    begun.iter_mut().for_each(|talk| assert!(share(&stage, "one", || talk.chat(1000, 100).unwrap()) > 0.98));
    // The kernel has no room for these, and lets nothing of them through.
    let fresh = |port| socket(one, SocketAddr::new(one.addresses()[0], port), echo.address());
    let new = [fresh(6001), fresh(6002)];
    let fast = share(&stage, "one", || new.iter().for_each(|socket| assert_eq!(answered(socket, 20), 0)));
    // None of them: a question for a neighbour's address may be among what was counted.
    assert!(fast < 0.1, "{fast}");
    let connect = || TcpStream::connect_timeout(&echo.address(), Duration::from_millis(500));
    assert!(one.namespace().enter(connect).unwrap().is_err());
    stage.node.namespace().command("sh", &["-c", "conntrack -F 2>/dev/null"]).unwrap();
    let mut talk = talk(one, Protocol::Udp, echo.address()).unwrap();
    assert!(share_of(&stage, "one", &mut talk) > 0.98);
}
