//! Many ADDs and DELs at once, with everything real. Nobody runs another program for them.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::cni::Refusal;
use shunt_lab::{Attachment, Container, Namespace, Network};

use crate::stage::Stage;

const CONTAINERS: u16 = 50;

/// How long all of them may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Page faults of an agent's children that have ended: 0 until it has had one.
fn faults_of_children(agent: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
    // Fields 11 and 13 of proc_pid_stat(5), behind the name in parentheses, which is the second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    [8, 10].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum()
}

/// Adds, and comes back later where the agent has not answered in time, as a runtime does (code 11).
fn add(node: &Namespace, network: &Network, container: &Container) -> Attachment {
    let begun = Instant::now();
    loop {
        match network.add(node, container) {
            Err(error) if begun.elapsed() < PATIENCE => {
                let refusal = error.downcast::<Refusal>().unwrap();
                assert_eq!(refusal.code, 11, "{refusal}");
            }
            added => return added.unwrap(),
        }
    }
}

/// What the node and its agent have that they had not before. The programs of restricted ports were loaded for the first
/// of these, and stay for the next.
fn left(stage: &Stage) -> Vec<String> {
    // What is loaded when it is first needed.
    let stays = ["pin v2/restricted/", "pin v2/programs/from_mapped", "pin v2/programs/from_wire"];
    let ours = stage.left().into_iter().filter(|line| !stays.iter().any(|pin| line.starts_with(pin)));
    let agents = ["ports", "fdb", "mappings"].map(|verb| (verb, stage.node.agent().ask(verb).unwrap()));
    let agents = agents.into_iter().filter(|(_, said)| *said != json!([]));
    ours.chain(agents.map(|(verb, said)| format!("{verb} {said}"))).collect()
}

#[test]
fn fifty_adds_and_fifty_dels_at_once_leave_exactly_nothing() {
    let stage = Stage::empty();
    let node = stage.node.namespace();
    let containers: Vec<Container> =
        (0..CONTAINERS).map(|at| Container::create(&stage.lab, &format!("c{at}")).unwrap()).collect();
    let networks: Vec<Network> = (0..CONTAINERS)
        .map(|at| {
            let mapping = json!({ "hostPort": 8000 + at, "containerPort": 80, "protocol": "tcp" });
            let network = stage.network.clone().with("runtimeConfig", json!({ "portMappings": [mapping] }));
            let network = network.with("ipMasq", json!(true)).with("portIsolation", json!(at % 2 == 0));
            network.with("egressRate", json!(8_000_000)).with("egressBurst", json!(800_000))
        })
        .collect();
    let calls = || networks.iter().zip(&containers);
    let added: Vec<_> = thread::scope(|scope| {
        let adds: Vec<_> =
            calls().map(|(network, container)| scope.spawn(|| add(node, network, container))).collect();
        adds.into_iter().map(|add| add.join().unwrap()).collect()
    });
    let addresses: BTreeSet<_> = added.iter().flat_map(Attachment::addresses).collect();
    assert_eq!(addresses.len(), 2 * usize::from(CONTAINERS), "no address twice");
    assert_eq!(stage.node.agent().ports().unwrap().len(), usize::from(CONTAINERS));
    for ((network, container), attachment) in calls().zip(&added).step_by(10) {
        network.check(node, container, &attachment.result).unwrap();
    }
    thread::scope(|scope| {
        for ((network, container), attachment) in calls().zip(&added) {
            scope.spawn(|| network.del(node, container, &attachment.result).unwrap());
        }
    });
    let begun = Instant::now();
    while !left(&stage).is_empty() && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(left(&stage), [""; 0]);
    // Not iptables, nor nft, nor ip, nor tc.
    assert_eq!(faults_of_children(stage.node.agent().id().unwrap()), 0);
}
