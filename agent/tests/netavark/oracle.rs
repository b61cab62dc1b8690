//! The same questions to containers of our plugin and of netavark's own bridge: who answers, and whom does the server see?

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use shunt_lab::{Namespace, Protocol};

use crate::podman::NETWORKS;
use crate::side::{CONTAINERS, NODE, OUTSIDE, PORTS, Side};
use crate::who::{ask_tcp, ask_udp};

/// Whom the server saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Client,
    Node,
    Somebody(IpAddr),
    Nobody,
}

/// How long an answer may take: what nobody answers takes as long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who asks, and whom.
type Question = (&'static str, SocketAddr, Protocol);

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

const CLIENTS: [&str; 5] = ["outside", "node", "server", "neighbour", "other"];

fn questions() -> Vec<Question> {
    let own = CONTAINERS.iter().flat_map(|(_, _, ips)| ips).map(|ip| (*ip, 7000));
    let beyond = OUTSIDE.into_iter().map(|ip| (ip, 7000));
    let gateways = NETWORKS.iter().flat_map(|(_, _, gateways)| gateways);
    let node = NODE.iter().chain(gateways).flat_map(|ip| PORTS.map(|port| (*ip, port)));
    let asked: Vec<_> = own.chain(beyond).chain(node).collect();
    let loopback = PORTS.map(|port| ("127.0.0.1", port));
    let each = CLIENTS.into_iter().flat_map(|client| {
        let more = if client == "node" { &loopback[..] } else { &[] };
        asked.iter().chain(more).map(move |to| (client, *to)).collect::<Vec<_>>()
    });
    let both = each.flat_map(|(client, (ip, port))| {
        BOTH.map(|protocol| (client, SocketAddr::new(ip.parse().unwrap(), port), protocol))
    });
    both.collect()
}

impl Side {
    fn client(&self, name: &str) -> (&Namespace, Vec<IpAddr>) {
        let parsed = |ips: [&str; 2]| ips.map(|ip| ip.parse().unwrap()).to_vec();
        match name {
            "outside" => (&self.outside, parsed(OUTSIDE)),
            "node" => (self.node.namespace(), Vec::new()),
            _ => {
                let at = CONTAINERS.iter().position(|(id, ..)| *id == name).unwrap();
                (self.containers[at].namespace(), parsed(CONTAINERS[at].2))
            }
        }
    }

    fn ask(&self, (client, to, protocol): &Question) -> Seen {
        let (namespace, own) = self.client(client);
        let asked = || match protocol {
            Protocol::Tcp => ask_tcp(*to, PATIENCE),
            Protocol::Udp => ask_udp(*to, PATIENCE).ok().flatten(),
        };
        let of_node = NODE.iter().chain(NETWORKS.iter().flat_map(|(_, _, gateways)| gateways));
        match namespace.enter(asked).unwrap() {
            None => Seen::Nobody,
            Some(seen) if own.contains(&seen) => Seen::Client,
            Some(seen) if of_node.clone().any(|ip| ip.parse() == Ok(seen)) => Seen::Node,
            Some(seen) => Seen::Somebody(seen),
        }
    }
}

/// Each question with what our container's side and that of netavark's bridge answer.
fn answers(more: &Value) -> Option<Vec<(Question, Seen, Seen)>> {
    let sides = [Side::new(true, more)?, Side::new(false, more)?];
    let questions = questions();
    let ask = |question: &Question| (*question, sides[0].ask(question), sides[1].ask(question));
    // Most of the time goes by waiting for those who do not answer.
    let asked = thread::scope(|scope| {
        let parts = questions.chunks(8);
        let threads: Vec<_> =
            parts.map(|part| scope.spawn(|| part.iter().map(ask).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for side in sides {
        side.tear_down(1);
    }
    Some(asked)
}

/// Whether a question is to a published port.
fn is_of_published((_, to, _): &Question) -> bool {
    PORTS.contains(&to.port())
}

/// How often our container's side answers.
fn answered(asked: &[(Question, Seen, Seen)]) -> usize {
    asked.iter().filter(|(_, own, _)| *own != Seen::Nobody).count()
}

/// What differs, but for what is known to.
fn differences(asked: &[(Question, Seen, Seen)], is_known: impl Fn(&Question, Seen, Seen) -> bool) -> String {
    let differ =
        asked.iter().filter(|(question, own, other)| own != other && !is_known(question, *own, *other));
    differ
        .map(|(question, own, other)| format!("{question:?}: {own:?}, netavark's bridge {other:?}\n"))
        .collect()
}

#[test]
fn without_isolation_the_same_is_reached() {
    let Some(asked) = answers(&json!({ "options": { "isolate": "false" } })) else { return };
    // A container of another network keeps its own address on its way to a host port.
    let known = |question: &Question, own, other| {
        question.0 == "other" && is_of_published(question) && (own, other) == (Seen::Client, Seen::Node)
    };
    assert_eq!(answered(&asked), 226);
    assert_eq!(differences(&asked, known), "");
}

#[test]
fn by_default_networks_are_apart() {
    let Some(asked) = answers(&json!({})) else { return };
    // The other network's containers do not reach host ports either.
    let known = |question: &Question, own, other| {
        question.0 == "other" && is_of_published(question) && (own, other) == (Seen::Nobody, Seen::Node)
    };
    assert_eq!(answered(&asked), 182);
    assert_eq!(differences(&asked, known), "");
}

#[test]
fn an_internal_network_reaches_the_same() {
    let Some(asked) = answers(&json!({ "internal": true })) else { return };
    assert_eq!(answered(&asked), 28);
    assert_eq!(differences(&asked, |_, _, _| false), "");
}
