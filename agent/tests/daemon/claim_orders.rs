//! Prepare, ADD, the agent's death, Unprepare and DEL in every order, against a model of two words: whether the claim is prepared, and
//! what the attachment has of it.

use shunt_agent_api::BridgePort;

use crate::capacity::capacity;
use crate::cluster::Cluster;

const RATES: [&str; 2] = ["50M", "100M"];
const MEGABITS: [u64; 2] = [50, 100];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Prepare,
    Add,
    Kill,
    Unprepare,
    Del,
}

const STEPS: [Step; 5] = [Step::Prepare, Step::Add, Step::Kill, Step::Unprepare, Step::Del];

/// What should be.
#[derive(Debug, Default)]
struct Model {
    is_prepared: bool,
    /// Whether there is an attachment, and whether the claim limits it.
    attached: Option<bool>,
}

impl Model {
    /// An ADD is limited by a claim that is prepared; one that comes first, as no kubelet has it, is not.
    fn take(&mut self, step: Step) {
        match step {
            Step::Prepare => self.is_prepared = true,
            Step::Add => self.attached = Some(self.is_prepared),
            Step::Kill => {}
            Step::Unprepare => {
                self.is_prepared = false;
                self.attached = self.attached.map(|_| false);
            }
            Step::Del => self.attached = None,
        }
    }
}

/// Every order of the other steps behind a first one.
fn orders(first: Step) -> Vec<Vec<Step>> {
    let mut orders = vec![vec![first]];
    for _ in 1..STEPS.len() {
        let longer = |order: Vec<Step>| {
            let left: Vec<_> = STEPS.into_iter().filter(|step| !order.contains(step)).collect();
            left.into_iter().map(move |step| order.iter().copied().chain([step]).collect())
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders
}

fn play(cluster: &mut Cluster, port: &BridgePort, step: Step) {
    match step {
        Step::Prepare => drop(cluster.prepare("wire").unwrap()),
        Step::Add => drop(cluster.rig.attach(port).unwrap()),
        Step::Kill => cluster.restart(),
        Step::Unprepare => assert_eq!(cluster.unprepare("wire"), ""),
        // One that is not there is no error.
        Step::Del => drop(cluster.rig.detach(port)),
    }
}

fn compare(cluster: &Cluster, port: &BridgePort, model: &Model) {
    assert_eq!(cluster.claim_files().len(), usize::from(model.is_prepared));
    let ports = cluster.rig.ports();
    assert_eq!(ports.len(), usize::from(model.attached.is_some()));
    let is_limited = model.attached == Some(true);
    if model.attached.is_some() {
        assert_eq!(cluster.limits(port), MEGABITS.map(|rate| is_limited.then_some(rate)));
        cluster.rig.check(port).unwrap();
    }
    let taken = capacity(&cluster.rig).uplinks[0].egress.allocated;
    assert_eq!(taken, if is_limited { MEGABITS[0] * 1_000_000 } else { 0 });
    assert!(cluster.rig.status().healthy, "{:?}", cluster.rig.status());
}

fn play_all_that_begin_with(first: Step) {
    let mut cluster = Cluster::start();
    cluster.keep("wire", "eth1", &["web"], RATES);
    let port = cluster.container(2, "web");
    for order in orders(first) {
        println!("{order:?}");
        let mut model = Model::default();
        for step in &order {
            play(&mut cluster, &port, *step);
            model.take(*step);
            compare(&cluster, &port, &model);
        }
        for step in [Step::Unprepare, Step::Del] {
            play(&mut cluster, &port, step);
        }
        assert!(cluster.claim_files().is_empty());
        cluster.rig.assert_empty();
    }
}

#[test]
fn every_order_has_24_that_begin_alike() {
    for first in STEPS {
        let mut all = orders(first);
        assert_eq!(all.len(), 24);
        all.dedup();
        assert_eq!(all.len(), 24);
    }
}

#[test]
fn whatever_follows_a_preparation_is_as_the_model_says() {
    play_all_that_begin_with(Step::Prepare);
}

#[test]
fn whatever_follows_an_add_is_as_the_model_says() {
    play_all_that_begin_with(Step::Add);
}

#[test]
fn whatever_follows_a_killed_agent_is_as_the_model_says() {
    play_all_that_begin_with(Step::Kill);
}

#[test]
fn whatever_follows_an_unpreparation_is_as_the_model_says() {
    play_all_that_begin_with(Step::Unprepare);
}

#[test]
fn whatever_follows_a_del_is_as_the_model_says() {
    play_all_that_begin_with(Step::Del);
}
