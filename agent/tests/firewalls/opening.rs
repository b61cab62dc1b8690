//! Who opens host ports changes while connections last, and what is ours goes with the container.

use std::net::SocketAddr;

use shunt_lab::{Conversation, Protocol};

use crate::linked::{NODE, Side};
use crate::questions::{Way, answer};
use crate::rules::published::REFUSES;

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

impl Side {
    fn talk(&self, client: &str, protocol: Protocol, to: &str) -> Conversation {
        let to = SocketAddr::new(to.parse().unwrap(), 8000);
        Conversation::open(self.client(client), protocol, to).unwrap()
    }

    /// Conversations of both families and protocols, by which something was said.
    fn talks(&self) -> Vec<Conversation> {
        let clients = ["outside", "one", "node"].into_iter();
        let ways = clients.flat_map(|client| NODE.map(|to| (client, to)));
        let mut all: Vec<_> =
            ways.flat_map(|(client, to)| BOTH.map(|protocol| self.talk(client, protocol, to))).collect();
        go_on(&mut all, "opened");
        all
    }

    /// Whether the host outside is answered by the second host port.
    fn is_answered(&self, way: Way) -> bool {
        let to = SocketAddr::new(NODE[0].parse().unwrap(), 8001);
        self.outside.enter(|| answer(way, to)).unwrap().is_some()
    }

    fn warnings(&self) -> Vec<String> {
        self.node.agent().status().unwrap().warnings
    }
}

fn go_on(all: &mut [Conversation], when: &str) {
    for (at, conversation) in all.iter_mut().enumerate() {
        conversation.chat(10, 100).unwrap_or_else(|error| panic!("{when}, {at}: {error:#}"));
    }
}

/// Somebody adds a first rule, and takes it away again: who opens changes, and no connection is lost.
#[test]
fn who_opens_host_ports_changes_without_a_loss() {
    let mut side = Side::start(Some("filters = 'auto'\nfilter_host_ports = true")).with_echoes();
    side.until_opened(false);
    assert!(!side.leads(), "nobody has rules: nothing is tracked");
    let mut programs = side.talks();
    side.run_alone(REFUSES);
    side.until_opened(true);
    assert_eq!(side.warnings(), Vec::<String>::new(), "nothing is bypassed");
    go_on(&mut programs, "by the programs, with rules");
    let mut kernels = side.talks();
    for way in [Way::Tcp, Way::Udp] {
        assert!(!side.is_answered(way), "{way:?}");
    }
    side.node.agent_mut().kill().unwrap();
    go_on(&mut kernels, "by the kernel, without an agent");
    side.node.restart_agent().unwrap();
    side.until_opened(true);
    go_on(&mut programs, "by the programs, after another start");
    go_on(&mut kernels, "by the kernel, after another start");
    side.run_alone("nft delete table inet engine");
    side.until_opened(false);
    go_on(&mut programs, "by the programs, to the end");
    go_on(&mut kernels, "by the kernel, to the end");
    let mut last = side.talks();
    for way in [Way::Tcp, Way::Udp] {
        assert!(side.is_answered(way), "{way:?}");
    }
    side.node.agent_mut().kill().unwrap();
    side.node.restart_agent().unwrap();
    for (all, whose) in [(&mut programs, "programs"), (&mut kernels, "kernel"), (&mut last, "programs again")]
    {
        go_on(all, whose);
    }
}

/// Our rules go with the container, and with the agent.
#[test]
fn nothing_is_left_of_what_opens_host_ports() {
    let side = Side::start(Some("filters = 'heed'\nfilter_host_ports = true"));
    assert!(side.leads());
    let network = side.network.clone();
    side.sandboxes[1].delete(&side.node, &network).unwrap();
    assert!(!side.leads());
    let listed = side.node.namespace().command("nft", &["list", "ruleset"]).unwrap();
    assert!(!listed.contains("7000"), "{listed}");
}
