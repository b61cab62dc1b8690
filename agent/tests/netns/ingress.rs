//! `ingressPolicy`: whom a container takes packets from, by whatever way they come.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Namespace, Sandbox, patience, uninterrupted};

use crate::restrictions::{assert_talk_to_gateway, drops, tap};
use crate::stage::Stage;
use crate::wire::{BROADCAST, frame, says};

const PORT: u16 = 7300;
const SENT: u64 = 5;
const PATIENCE: Duration = Duration::from_secs(10);

/// Two containers with that policy; the stage's network has none.
pub(crate) fn with_policy(policy: &str) -> Stage {
    let mut stage = Stage::empty();
    let open = stage.network.clone();
    stage.network = open.clone().with("ingressPolicy", json!(policy));
    stage.add("one");
    stage.add("two");
    stage.network = open;
    stage
}

fn datagrams(from: &Namespace, to: IpAddr, text: &str, count: u64) {
    from.enter(|| {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        for _ in 0..count {
            socket.send_to(text.as_bytes(), SocketAddr::new(to, PORT)).unwrap();
        }
    })
    .unwrap();
}

/// What was dropped on the bridge for that policy.
fn shut_out(stage: &Stage) -> u64 {
    let drops = stage.node.agent().drops().unwrap();
    drops.iter().filter(|drop| drop.reason == "ingress_policy").map(|drop| drop.packets).sum()
}

/// One container of another network of the node's, which has no policy.
fn stranger(stage: &Stage) -> Sandbox {
    let other = stage.node.network("others", "cni1", &["10.79.0.0/24", "fd79::/64"]);
    let sandbox = Sandbox::start(&stage.lab, &stage.node, &other, "stranger").unwrap();
    stage.node.settle().unwrap();
    sandbox
}

fn assert_shuts_out(stage: &Stage, stranger: &Sandbox) {
    let one = &stage.sandboxes[0];
    for address in one.addresses() {
        let heard =
            one.namespace().enter(|| UdpSocket::bind(SocketAddr::new(address, PORT)).unwrap()).unwrap();
        heard.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        let before = shut_out(stage);
        datagrams(stranger.namespace(), address, "from another bridge", SENT);
        let begun = Instant::now();
        while shut_out(stage) < before + SENT {
            assert!(begun.elapsed() < patience(PATIENCE), "{address}: {:?}", stage.node.agent().drops());
            std::thread::sleep(Duration::from_millis(20));
        }
        // The node itself gets in, and is the first to.
        datagrams(stage.node.namespace(), address, "from the node", 1);
        let mut text = [0; 64];
        let length = uninterrupted(|| heard.recv(&mut text)).unwrap();
        assert_eq!(&text[..length], b"from the node", "{address}");
    }
}

#[test]
fn a_container_with_the_policy_same_bridge_takes_nothing_from_other_bridges() {
    let stage = with_policy("same-bridge");
    let stranger = stranger(&stage);
    assert_shuts_out(&stage, &stranger);
    stage.assert_talk(0, 1);
    stage.assert_talk(1, 0);
    assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
    let port = stage.node.agent().port("one").unwrap();
    assert_eq!(port.restrictions, ["ingressPolicy"]);
    assert!(port.from.fast > 20 && port.to.fast > 20, "{port:?}");
}

/// The kernel's bridge knows no policy: a container's holds as long as the programs are there, and again once an agent has put
/// them back.
#[test]
fn a_policy_is_the_programs_alone_and_holds_again_with_the_next_agent() {
    let mut stage = with_policy("isolated");
    stage.add("three");
    let taps: Vec<_> = stage.sandboxes.iter().map(tap).collect();
    let [one, _, three] = &taps[..] else { unreachable!("three were added") };
    let try_to_reach = |text: &str| three.send(&frame(one.mac(), three.mac(), text));
    try_to_reach("while there are programs");
    crate::restrictions::lose_programs(&mut stage.node);
    try_to_reach("without any");
    let seen = one.until(|frame| says(frame, "without any"));
    assert!(!seen.iter().any(|frame| says(frame, "while there are")), "{seen:02x?}");
    stage.node.restart_agent().unwrap();
    try_to_reach("with programs again");
    let bridge = crate::wire::Wire::tap(stage.node.namespace(), "cni0");
    bridge.send(&frame(one.mac(), bridge.mac(), "from the node"));
    let seen = one.until(|frame| says(frame, "from the node"));
    assert!(!seen.iter().any(|frame| says(frame, "with programs again")), "{seen:02x?}");
}

#[test]
fn a_container_with_the_policy_isolated_meets_the_node_and_no_container() {
    let mut stage = with_policy("isolated");
    stage.add("three");
    let stranger = stranger(&stage);
    assert_shuts_out(&stage, &stranger);
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (one, two, three) = (tap(one), tap(two), tap(three));
    for (sender, name) in [(&two, "two"), (&three, "three")] {
        for destination in [one.mac(), BROADCAST] {
            sender.send(&frame(destination, sender.mac(), "from a neighbour"));
        }
        assert!(drops(&stage, name, "ingress_policy") >= 1, "{name}: {:?}", stage.node.agent().drops());
    }
    one.send(&frame(three.mac(), one.mac(), "from the recluse"));
    assert!(drops(&stage, "one", "ingress_policy") >= 1, "{:?}", stage.node.agent().drops());
    let bridge = crate::wire::Wire::tap(stage.node.namespace(), "cni0");
    bridge.send(&frame(one.mac(), bridge.mac(), "from the node"));
    let seen = one.until(|frame| says(frame, "from the node"));
    assert!(!seen.iter().any(|frame| says(frame, "from a neighbour")), "{seen:02x?}");
    assert!(!three.until_silence().iter().any(|frame| says(frame, "from the recluse")));
    for sandbox in &stage.sandboxes {
        assert_talk_to_gateway(&stage, sandbox);
    }
}
