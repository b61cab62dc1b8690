//! What `explain` says of a frame, and then the frame itself: the counters must have moved as it said.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_agent_api::{
    AttachmentKey, Client, DropReport, Explanation, Origin, PortReport, Question, Reply, Request,
};
use shunt_lab::{Lab, Node, Sandbox, patience};

use crate::frames;
use crate::twins::{Manner, Ours};

/// How long a frame may be on its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port's packets by lane, and the drops, all by name.
type Counts = BTreeMap<String, u64>;

/// How often a frame is sent again because something else was counted with it.
const STRAYS: u32 = 5;

struct Asker {
    client: Client,
}

impl Asker {
    fn explain(&mut self, from: usize, bytes: &[u8]) -> Explanation {
        let container = format!("ours-{from}");
        let key = AttachmentKey { network: "pods".into(), container, ifname: "eth0".into() };
        let question = Question::Frame(bytes.to_vec());
        match self.client.ask(Request::Explain { from: Origin::Container(key), packet: question }) {
            Ok(Reply::Explained(explanation)) => explanation,
            other => panic!("{other:?}"),
        }
    }

    fn counts(&mut self) -> Counts {
        let mut counts = Counts::new();
        let Ok(Reply::Ports(ports)) = self.client.ask(Request::Ports) else { panic!("no ports") };
        for PortReport { host_ifname, from, to, .. } in ports {
            let lanes = [("from", from), ("to", to)].into_iter().flat_map(|(way, traffic)| {
                [("fast", traffic.fast), ("kernel", traffic.kernel), ("dropped", traffic.dropped)]
                    .map(|(lane, packets)| (format!("{host_ifname} {way} {lane}"), packets))
            });
            counts.extend(lanes);
        }
        let Ok(Reply::Drops(drops)) = self.client.ask(Request::Drops) else { panic!("no drops") };
        counts.extend(
            drops
                .into_iter()
                .map(|DropReport { port, reason, packets, .. }| (format!("{port} {reason}"), packets)),
        );
        counts
    }
}

/// What has to be one more when this has been explained, and what of it may still come.
fn expected(explanation: &Explanation, sender: &str) -> Vec<String> {
    let is_ours = |program: &str| program != "kernel";
    let ends = explanation.stages.iter().filter(|stage| stage.decision != "on" && is_ours(&stage.program));
    let mut counted = Vec::new();
    for end in ends {
        let at = &end.ifname;
        let way = if end.program == "to_container" { "to" } else { "from" };
        match end.decision.as_str() {
            "deliver" | "flood" => counted.push(format!("{sender} from fast")),
            "pass" => counted.push(format!("{at} {way} kernel")),
            "drop" => {
                counted.push(format!("{at} {way} dropped"));
                counted.push(format!("{at} {}", explanation.reason));
            }
            other => panic!("no decision {other}"),
        }
    }
    counted.extend(explanation.to.iter().map(|to| format!("{to} to fast")));
    counted
}

fn assert_explained(manner: &Manner) {
    let lab = Lab::new().unwrap();
    let ours = Ours::start(&lab, manner);
    let mut asker = Asker { client: Client::connect(ours.node.agent().socket()).unwrap() };
    let sent = frames::all(&ours.hosts, ours.bridge_mac());
    let host_ifnames: Vec<_> = (0..ours.sandboxes.len())
        .map(|index| ours.node.agent().port(&format!("ours-{index}")).unwrap().host_ifname)
        .collect();
    let mut verdicts = BTreeMap::<String, u32>::new();
    for frame in &sent {
        let explanation = asker.explain(frame.from, &frame.bytes);
        *verdicts.entry(explanation.verdict.clone()).or_default() += 1;
        let sender = &host_ifnames[frame.from];
        let wanted = expected(&explanation, sender);
        let mut strays = 0;
        'sent: loop {
            let before = asker.counts();
            ours.side.wires[frame.from].send(&frame.bytes);
            let begun = Instant::now();
            loop {
                let after = asker.counts();
                let more = |name: &String| {
                    after.get(name).copied().unwrap_or_default()
                        - before.get(name).copied().unwrap_or_default()
                };
                if wanted.iter().all(|name| more(name) == 1) {
                    // The sender's counters say one thing of one frame.
                    let others =
                        ["fast", "kernel", "dropped"].map(|lane| more(&format!("{sender} from {lane}")));
                    assert_eq!(others.iter().sum::<u64>(), 1, "{}: {explanation:#?}", frame.name);
                    break 'sent;
                }
                // The kernel's own groups (MLD) are flooded to everybody now and then: not at every try.
                if wanted.iter().any(|name| more(name) > 1) && strays < STRAYS {
                    strays += 1;
                    continue 'sent;
                }
                let moved: Vec<_> = after.keys().filter(|name| more(name) != 0).collect();
                assert!(
                    begun.elapsed() < patience(PATIENCE),
                    "{}: counted {moved:?}, explained {wanted:?}\n{explanation:#?}",
                    frame.name
                );
            }
        }
    }
    assert!(verdicts.len() >= 2, "{verdicts:?}");
}

#[test]
fn frames_of_open_ports_fare_as_explained() {
    assert_explained(&Manner { keys: |_| Vec::new(), flags: |_| &[] });
}

#[test]
fn frames_of_restricted_ports_fare_as_explained() {
    let keys = |index: usize| -> Vec<(&'static str, Value)> {
        let isolated = index != 3;
        vec![
            ("portIsolation", json!(isolated)),
            ("macspoofchk", json!(index == 0)),
            ("ipspoofchk", json!(true)),
        ]
    };
    assert_explained(&Manner { keys, flags: |_| &[] });
}

#[test]
fn frames_of_ports_in_vlans_fare_as_explained() {
    let keys = |index: usize| -> Vec<(&'static str, Value)> {
        match index {
            0 => vec![("vlans", json!({ "untagged": 5, "tagged": [10, 20] }))],
            1 => vec![("vlan", json!(10))],
            2 => vec![("vlanTrunk", json!([{ "minID": 10, "maxID": 20 }]))],
            _ => vec![("vlans", json!({ "untagged": 20, "tagged": [5, 10] }))],
        }
    };
    assert_explained(&Manner { keys, flags: |_| &[] });
}

#[test]
fn a_packet_is_sketched_by_where_it_goes() {
    let lab = Lab::new().unwrap();
    let node = Node::start(&lab, "node").unwrap();
    let network = node.network("pods", "cni0", &["10.78.0.0/24", "fd78::/64"]);
    let [_one, two] = ["one", "two"].map(|id| Sandbox::start(&lab, &node, &network, id).unwrap());
    let explain = |from: &str, packet: &str| {
        let answer = node.agent().ask_with("explain", &["--from", from, "--packet", packet]).unwrap();
        serde_json::from_value::<Explanation>(answer).unwrap()
    };
    let port_of_one = node.agent().port("one").unwrap().host_ifname;
    let port_of_two = node.agent().port("two").unwrap().host_ifname;
    let to_two = two.addresses().into_iter().flat_map(|address| {
        let end = std::net::SocketAddr::new(address, 80);
        [format!("tcp {end}"), format!("udp {end}"), format!("icmp {address}")]
    });
    let to_two: Vec<String> = to_two.collect();
    for packet in &to_two {
        let neighbor = explain("pods/one/eth0", packet);
        assert_eq!((neighbor.verdict.as_str(), &neighbor.to), ("deliver", &vec![port_of_two.clone()]));
        let stages: Vec<_> = neighbor.stages.iter().map(|stage| stage.stage.as_str()).collect();
        let all = [
            "port", "parse", "police", "vouch", "admit", "answer", "find", "isolate", "path", "accept",
            "deliver",
        ];
        assert_eq!(stages, all, "{packet}");
        assert_eq!(explain("host", packet).to, neighbor.to, "{packet}");
    }
    let arp = explain("pods/one/eth0", &format!("arp {}", two.addresses()[0]));
    // The answer goes back to who asks.
    assert_eq!((arp.verdict.as_str(), &arp.to), ("deliver", &vec![port_of_one]));
    assert!(arp.stages.iter().any(|stage| stage.stage == "answer" && stage.detail.contains("who has")));
    let nobody = explain("pods/one/eth0", "arp 10.78.0.99");
    assert_eq!((nobody.verdict.as_str(), nobody.reason.as_str()), ("pass", "group"));
    let world = explain("pods/one/eth0", "tcp 198.51.100.1:443");
    assert_eq!((world.verdict.as_str(), world.reason.as_str()), ("pass", "to_host"));
    // Nothing was sent and nothing was counted; the kernel's own reports (MLD) are, but not at every try.
    let counts = || node.agent().ports().unwrap().iter().map(|port| port.from.fast).collect::<Vec<_>>();
    let nothing_is_counted = (0..STRAYS).any(|_| {
        let before = counts();
        for packet in &to_two {
            explain("pods/one/eth0", packet);
            explain("host", packet);
        }
        let ipv4 = two.addresses()[0];
        for packet in [&format!("arp {ipv4}"), "arp 10.78.0.99", "tcp 198.51.100.1:443"] {
            explain("pods/one/eth0", packet);
        }
        counts() == before
    });
    assert!(nothing_is_counted);
}
