//! Who hears what a container says to all when it comes: nobody but the node, unless somebody needs it, and then everybody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::cni::Refusal;
use shunt_lab::{Container, Sandbox, patience};

use crate::datagram::framed;
use crate::intruder::Intruder;
use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{BROADCAST, Mac, Wire, frame, says};

/// Within this the kernel of a container has looked for routers, and has said everything else of its beginning at least twice.
const BEGINNING: Duration = Duration::from_millis(2500);

/// How soon the agent hears of a change, and a kernel finds a duplicate.
const SOON: Duration = Duration::from_secs(5);

/// What a frame says of its sender's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Announcement,
    RouterSolicitation,
    Report,
}

fn said(frame: &[u8]) -> Option<Said> {
    let is = |at: usize, bytes: &[u8]| frame.get(at..at + bytes.len()) == Some(bytes);
    let is_v6 = is(12, &[0x86, 0xdd]);
    match () {
        () if is(12, &[0x08, 0x06]) && frame.get(28..32) == frame.get(38..42) => Some(Said::Announcement),
        () if is_v6 && is(20, &[58]) && is(54, &[136]) && is(0, &[0x33, 0x33]) => Some(Said::Announcement),
        () if is_v6 && is(20, &[58]) && is(54, &[133]) => Some(Said::RouterSolicitation),
        () if is_v6 && is(20, &[0]) && is(62, &[143]) => Some(Said::Report),
        () => None,
    }
}

/// What `listener` has heard of the station `of` by the time that a last word of `speaker` reaches it.
fn heard(listener: &Wire, speaker: &Wire, of: Mac) -> Vec<Said> {
    speaker.send(&frame(BROADCAST, speaker.mac(), "the last word"));
    let heard = listener.until(|frame| says(frame, "the last word"));
    heard.iter().filter(|frame| frame[6..12] == of).filter_map(|frame| said(frame)).collect()
}

/// Adds a container to those of the stage, and returns what the first one and the node have heard of its beginning.
fn beginning(stage: &mut Stage, id: &str) -> [Vec<Said>; 2] {
    let listener = tap(&stage.sandboxes[0]);
    let node = Wire::tap(stage.node.namespace(), "cni0");
    stage.add(id);
    std::thread::sleep(BEGINNING);
    let speaker = tap(stage.sandboxes.last().unwrap());
    [&listener, &node].map(|wire| heard(wire, &speaker, speaker.mac()))
}

/// A bridge with one container.
fn stage() -> Stage {
    let mut stage = Stage::empty();
    stage.add("one");
    stage
}

/// The container's kernel says who it is.
fn announce(sandbox: &Sandbox) {
    let mac = tap(sandbox).mac().map(|byte| format!("{byte:02x}")).join(":");
    sandbox.namespace().command("ip", &["link", "set", "eth0", "address", &mac]).unwrap();
}

#[test]
fn nobody_but_the_node_hears_of_a_container_that_is_new() {
    let mut stage = stage();
    let [others, node] = beginning(&mut stage, "two");
    assert!(others.is_empty(), "{others:?}");
    // Of IPv4, of IPv6, and of the link-local address, each once or more.
    let count = |what| node.iter().filter(|said| **said == what).count();
    assert!(count(Said::Announcement) >= 3, "{node:?}");
    assert!(count(Said::Report) >= 1 && count(Said::RouterSolicitation) >= 1, "{node:?}");
    stage.assert_talk(0, 1);
    stage.assert_talk(1, 0);
}

/// Everybody hears all of a new container's beginning.
fn assert_heard(mut stage: Stage) {
    let [others, _] = beginning(&mut stage, "two");
    for what in [Said::Announcement, Said::RouterSolicitation, Said::Report] {
        assert!(others.contains(&what), "{what:?}: {others:?}");
    }
}

#[test]
fn everybody_hears_everything_where_that_is_configured() {
    let mut stage = Stage::empty_by("announcements = 'all'\n");
    stage.add("one");
    assert_heard(stage);
}

#[test]
fn everybody_hears_everything_where_somebody_elses_port_is_on_the_bridge() {
    let stage = stage();
    let _intruder = Intruder::enter(&stage);
    std::thread::sleep(Duration::from_secs(1));
    assert_heard(stage);
}

#[test]
fn an_address_that_is_given_again_is_announced_to_everybody() {
    let mut stage = stage();
    beginning(&mut stage, "two");
    let former = stage.sandboxes.pop().unwrap();
    let given: Vec<_> = former.addresses().iter().map(ToString::to_string).collect();
    former.delete(&stage.node, &stage.network).unwrap();
    drop(former);
    stage.network = stage.network.clone().with("args", json!({ "cni": { "ips": given } }));
    let [others, _] = beginning(&mut stage, "next");
    assert!(others.contains(&Said::Announcement), "{others:?}");
    assert!(!others.contains(&Said::Report), "{others:?}");
}

#[test]
fn an_address_that_somebody_waits_for_is_announced_to_everybody() {
    let mut stage = stage();
    let IpAddr::V4(own) = stage.sandboxes[0].addresses()[0] else { panic!("IPv4 comes first") };
    let next = Ipv4Addr::from(u32::from(own) + 1);
    let ask = || UdpSocket::bind((own, 0)).unwrap().send_to(b"who is there?", (next, 9)).unwrap();
    stage.sandboxes[0].namespace().enter(ask).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let [others, _] = beginning(&mut stage, "two");
    assert_eq!(stage.sandboxes[1].addresses()[0], IpAddr::from(next));
    assert!(others.contains(&Said::Announcement), "{others:?}");
}

#[test]
fn an_address_that_has_moved_is_announced_to_everybody_there_and_back() {
    let mut stage = stage();
    ["two", "three"].into_iter().for_each(|id| _ = stage.add(id));
    let [from, to, listener] = [0, 1, 2].map(|index| &stage.sandboxes[index]);
    let (ear, address) = (tap(listener), from.addresses()[0]);
    for (from, to) in [(from, to), (to, from)] {
        from.namespace()
            .command("ip", &["address", "delete", &format!("{address}/24"), "dev", "eth0"])
            .unwrap();
        to.namespace().command("ip", &["address", "add", &format!("{address}/24"), "dev", "eth0"]).unwrap();
        for _ in 0..2 {
            ear.at_hand();
            announce(to);
            let speaker = tap(to);
            assert!(heard(&ear, &speaker, speaker.mac()).contains(&Said::Announcement));
        }
    }
}

#[test]
fn a_duplicate_of_an_address_that_is_new_is_found_by_its_prober() {
    let mut stage = stage();
    beginning(&mut stage, "two");
    let [one, two] = [0, 1].map(|index| &stage.sandboxes[index]);
    let address = two.attachment().ipv6().unwrap();
    let prober = one.namespace();
    prober.command("sysctl", &["-qw", "net.ipv6.conf.eth0.accept_dad=1"]).unwrap();
    prober.command("ip", &["address", "add", &format!("{address}/64"), "dev", "eth0"]).unwrap();
    let begun = Instant::now();
    loop {
        let shown = prober.command("ip", &["-6", "address", "show", "dev", "eth0"]).unwrap();
        let line = shown.lines().find(|line| line.contains(&address.to_string())).unwrap();
        if line.contains("dadfailed") {
            return;
        }
        assert!(begun.elapsed() < patience(SOON), "{line}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_add_whose_address_a_neighbour_has_made_its_own_fails() {
    let mut stage = stage();
    let own = stage.sandboxes[0].attachment().ipv6().unwrap();
    let next = Ipv6Addr::from(u128::from(own) + 1);
    let neighbour = stage.sandboxes[0].namespace();
    neighbour.command("ip", &["address", "add", &format!("{next}/64"), "dev", "eth0", "nodad"]).unwrap();
    stage.network = stage.network.clone().with("enabledad", json!(true));
    let container = Container::create(&stage.lab, "late").unwrap();
    let error = stage.network.add(stage.node.namespace(), &container).unwrap_err();
    let refusal = error.downcast::<Refusal>().unwrap();
    assert!(refusal.to_string().contains(&next.to_string()), "{refusal}");
}

#[test]
fn a_bridge_that_begins_to_query_learns_who_listens() {
    let mut stage = stage();
    let querier = ["link", "set", "cni0", "type", "bridge", "mcast_querier", "1"];
    stage.node.namespace().command("ip", &querier).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    beginning(&mut stage, "two");
    let port = stage.node.agent().port("two").unwrap().host_ifname;
    let groups = stage.node.namespace().command("bridge", &["mdb", "show", "dev", "cni0"]).unwrap();
    let is_listener = |line: &str| line.contains(&format!("port {port} ")) && line.contains("ff02::1:ff");
    assert!(groups.lines().any(is_listener), "{groups}");
}

/// A general query (RFC 3810, section 5.1), with its options in front.
fn query(speaker: &Wire) -> Vec<u8> {
    let own = crate::authority::link_local(speaker.mac()).octets();
    let all: [u8; 16] = std::array::from_fn(|at| match at {
        0 => 0xff,
        1 => 2,
        15 => 1,
        _ => 0,
    });
    let options = [58, 0, 5, 2, 0, 0, 1, 0];
    let body = [&[130, 0, 0, 0, 0x27, 0x10, 0, 0][..], &[0; 16], &[2, 125, 0, 0]].concat();
    let head = [&[0x60, 0, 0, 0, 0, 36, 0, 1][..], &own, &all].concat();
    framed([0x33, 0x33, 0, 0, 0, 1], speaker.mac(), &[head, options.to_vec(), body].concat())
}

#[test]
fn reports_are_heard_by_everybody_once_a_container_queries_and_announcements_are_not() {
    let mut stage = stage();
    let querier = tap(&stage.sandboxes[0]);
    querier.send(&query(&querier));
    let [others, _] = beginning(&mut stage, "two");
    assert!(others.contains(&Said::Report), "{others:?}");
    assert!(!others.contains(&Said::Announcement), "{others:?}");
}

#[test]
fn a_container_that_routes_hears_who_looks_for_routers() {
    let mut stage = stage();
    let router = stage.sandboxes[0].namespace();
    router.command("sysctl", &["-qw", "net.ipv6.conf.all.forwarding=1"]).unwrap();
    // Its kernel reports that it listens to all routers, after a moment.
    std::thread::sleep(BEGINNING);
    let [others, _] = beginning(&mut stage, "two");
    assert!(others.contains(&Said::RouterSolicitation), "{others:?}");
    assert!(!others.contains(&Said::Announcement), "{others:?}");
}
