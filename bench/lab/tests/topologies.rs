//! The lab itself: what it makes, it takes away; its traffic arrives.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use shunt_lab::load::{Bound, Placement, tcp_crr, tcp_rr, udp_burst, udp_rr};
use shunt_lab::{BareVeth, Conversation, Echo, Lab, Machine, Node, Path, Protocol, Sandbox};

const SHORT: Bound = Bound { operations: 500, time: Duration::from_secs(2) };

#[test]
fn every_load_crosses_a_bare_veth_pair() {
    let lab = Lab::new().unwrap();
    let veth = BareVeth::build(&lab, "bare").unwrap();
    let at = Placement::one(0);
    for sample in [
        tcp_rr(veth.path(), at, SHORT).unwrap(),
        tcp_crr(veth.path(), at, SHORT).unwrap(),
        udp_rr(veth.path(), at, SHORT).unwrap(),
        udp_burst(veth.path(), 0, SHORT).unwrap(),
    ] {
        assert!(sample.operations > 0, "{sample:?}");
        assert_eq!(sample.lost, 0, "{sample:?}");
        assert!(sample.p50_us.is_none_or(|p50| p50 > 1.0), "{sample:?}");
    }
}

#[test]
fn a_conversation_notices_a_server_that_is_not_there() {
    let lab = Lab::new().unwrap();
    let veth = BareVeth::build(&lab, "bare").unwrap();
    let path = veth.path();
    let echo = Echo::listen(path.server, path.address, 7000).unwrap();
    let mut tcp = Conversation::open(path.client, Protocol::Tcp, echo.address()).unwrap();
    let mut udp = Conversation::open(path.client, Protocol::Udp, echo.address()).unwrap();
    tcp.chat(20, 30_000).unwrap();
    udp.chat(20, 1200).unwrap();
    drop(echo);
    assert!(tcp.say(10).is_err());
    assert!(udp.say(10).is_err());
}

#[test]
fn the_reference_plugins_add_and_delete_containers_that_talk() {
    let lab = Lab::new().unwrap();
    let node = Node::bare(&lab, "node").unwrap();
    let network = node.reference_network("reference", "cni0", &["10.88.0.0/24"]);
    let before = node.inventory().unwrap();
    let [one, two] = ["one", "two"].map(|id| Sandbox::start(&lab, &node, &network, id).unwrap());
    tcp_rr(Path::between(&one, &two).unwrap(), Placement::one(0), SHORT).unwrap();
    one.delete(&node, &network).unwrap();
    two.delete(&node, &network).unwrap();
    let left = node.inventory().unwrap().since(&before);
    assert!(left.iter().all(|line| line.contains("cni0")), "{left:?}");
}

#[test]
fn a_dropped_lab_leaves_nothing_even_after_a_panic() {
    let machine = Machine::now();
    let (report, root) = std::sync::mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let lab = Lab::new().unwrap();
        report.send(lab.root().to_path_buf()).unwrap();
        let _veth = BareVeth::build(&lab, "bare").unwrap();
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert_eq!(machine.leaks(&root.recv().unwrap()), Vec::<String>::new());
}
