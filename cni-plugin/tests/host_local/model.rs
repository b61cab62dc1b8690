//! Any sequence of ADD, DEL and GC against a model of a few lines.

use std::{collections::BTreeMap, net::IpAddr};

use proptest::prelude::*;
use serde_json::json;

use crate::network::Network;

#[derive(Clone, Debug)]
enum Step {
    Add(usize, usize),
    Del(usize, usize),
    Gc(Vec<(usize, usize)>),
}

const CONTAINERS: [&str; 5] = ["a", "b", "c", "d", "e"];
const IFNAMES: [&str; 2] = ["eth0", "net1"];

/// Two range sets as lists of addresses; who holds which; where each list was last taken from.
struct Model {
    sets: [Vec<IpAddr>; 2],
    held: BTreeMap<IpAddr, (usize, usize)>,
    last: [Option<usize>; 2],
}

impl Model {
    fn new() -> Self {
        let addresses = |prefix: &str, hosts: &[u8]| {
            hosts.iter().map(|host| format!("{prefix}{host}").parse().unwrap()).collect()
        };
        let mut first: Vec<IpAddr> = addresses("10.0.0.", &[2, 3, 4, 5, 6]);
        first.extend::<Vec<IpAddr>>(addresses("10.0.1.", &[2]));
        let sets = [first, addresses("fd00::", &[1, 2, 4, 5, 6, 7])];
        Self { sets, held: BTreeMap::new(), last: [None; 2] }
    }

    fn add(&mut self, attachment: (usize, usize)) -> Option<Vec<IpAddr>> {
        if self.held.values().any(|holder| *holder == attachment) {
            return None;
        }
        let mut given = Vec::new();
        for (set, last) in self.sets.iter().zip(&mut self.last) {
            let start = last.map_or(0, |last| last + 1);
            let free = (start..start + set.len())
                .map(|index| index % set.len())
                .find(|index| !self.held.contains_key(&set[*index]))?;
            *last = Some(free);
            given.push(set[free]);
        }
        self.held.extend(given.iter().map(|address| (*address, attachment)));
        Some(given)
    }
}

fn step() -> impl Strategy<Value = Step> {
    let attachment = (0..CONTAINERS.len(), 0..IFNAMES.len());
    prop_oneof![
        6 => attachment.clone().prop_map(|(container, ifname)| Step::Add(container, ifname)),
        3 => attachment.clone().prop_map(|(container, ifname)| Step::Del(container, ifname)),
        1 => prop::collection::vec(attachment, 0..6).prop_map(Step::Gc),
    ]
}

fn named((container, ifname): (usize, usize)) -> (&'static str, &'static str) {
    (CONTAINERS[container], IFNAMES[ifname])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_verbs_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        let network = Network::new(json!({"ranges": [
            [{"subnet": "10.0.0.0/29"}, {"subnet": "10.0.1.0/30"}],
            [{"subnet": "fd00::/125", "gateway": "fd00::3"}],
        ]}));
        for step in steps {
            match step {
                Step::Add(container, ifname) => {
                    let answer = network.add(CONTAINERS[container], IFNAMES[ifname]).ok();
                    let addresses = answer.map(|answer| answer.ips.iter().map(|ip| ip.address).collect::<Vec<_>>());
                    prop_assert_eq!(addresses, model.add((container, ifname)));
                }
                Step::Del(container, ifname) => {
                    network.del(CONTAINERS[container], IFNAMES[ifname]).unwrap();
                    model.held.retain(|_, holder| *holder != (container, ifname));
                }
                Step::Gc(valid) => {
                    network.gc(&valid.iter().copied().map(named).collect::<Vec<_>>()).unwrap();
                    model.held.retain(|_, holder| valid.contains(holder));
                }
            }
            let record = |(address, holder): (&IpAddr, &(usize, usize))| {
                let (container, ifname) = named(*holder);
                (*address, format!("{container}\r\n{ifname}"))
            };
            prop_assert_eq!(network.held(), model.held.iter().map(record).collect::<BTreeMap<_, _>>());
        }
    }
}
