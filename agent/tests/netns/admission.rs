//! Admission, from the runtime's side: an ADD that asks for more than is left fails with the figures and makes nothing.

use serde_json::{Value, json};
use shunt_lab::cni::{Call, Refusal};
use shunt_lab::{Container, Lab, Network, Node, Sandbox};

/// What can be handed out, in bits a second.
const CAPACITY: u64 = 100_000_000;

struct World {
    sandboxes: Vec<Sandbox>,
    node: Node,
    lab: Lab,
}

impl World {
    /// A node that hands out [`CAPACITY`] of its uplink, and no more.
    fn new() -> Self {
        let lab = Lab::new().unwrap();
        let text = format!("admission = 'enforce'\n[uplinks.lo]\negress = {CAPACITY}\ningress = {CAPACITY}");
        let node = Node::start_by(&lab, "node", &text).unwrap();
        Self { sandboxes: Vec::new(), node, lab }
    }

    /// The network, whose runtime asks for this rate each way.
    fn network(&self, rate: u64) -> Network {
        let limits = json!({ "bandwidth": { "ingressRate": rate, "ingressBurst": 80_000, "egressRate": rate,
            "egressBurst": 80_000 } });
        self.node.network("pods", "cni0", &["10.77.0.0/24"]).with("runtimeConfig", limits)
    }

    fn add(&mut self, id: &str, rate: u64) {
        let network = self.network(rate);
        self.sandboxes.push(Sandbox::start(&self.lab, &self.node, &network, id).unwrap());
    }

    /// What is left of the uplink: egress, ingress.
    fn free(&self) -> [u64; 2] {
        let uplink = self.node.agent().ask("capacity").unwrap()["uplinks"][0].clone();
        ["egress", "ingress"].map(|way| uplink[way]["free"].as_u64().unwrap())
    }

    /// What STATUS says of a network whose containers have this rate; none for an ADD that would work.
    fn status(&self, rate: Option<u64>) -> Option<Refusal> {
        let mut config = json!({ "cniVersion": "1.1.0", "name": "pods", "type": "shunt", "bridge": "cni0",
            "agentSocket": self.node.agent().socket() });
        if let Some(rate) = rate {
            config["egressRate"] = rate.into();
            config["egressBurst"] = rate.into();
        }
        let (config, path) = (config.to_string(), self.node.plugins());
        let call = Call {
            verb: "STATUS",
            container: "",
            netns: "".as_ref(),
            ifname: "",
            path,
            plugin: "shunt",
            config: config.as_bytes(),
        };
        call.run(self.node.namespace()).unwrap().outcome.err()
    }
}

#[test]
fn an_add_over_the_free_capacity_fails_with_the_figures_and_makes_nothing() {
    let mut world = World::new();
    world.add("first", 70_000_000);
    assert_eq!(world.free(), [30_000_000; 2]);
    let container = Container::create(&world.lab, "second").unwrap();
    let before = world.node.inventory().unwrap();
    let refused = world.network(40_000_000).add(world.node.namespace(), &container).unwrap_err();
    let refused: Refusal = refused.downcast().unwrap();
    let figures = "uplink lo has 30M of 100M bit/s left for egress, and 40M bit/s are asked for";
    assert!(refused.code == 101 && refused.message.contains(figures), "{refused}");
    assert_eq!(world.node.inventory().unwrap().since(&before), [""; 0]);
    let inside = container.namespace().command("ip", &["link", "show", "eth0"]);
    assert!(inside.is_err(), "{inside:?}");
    // What fits is admitted, and what is deleted is handed out again.
    world.add("third", 30_000_000);
    assert_eq!(world.free(), [0; 2]);
    world.sandboxes[0].delete(&world.node, &world.network(70_000_000)).unwrap();
    assert_eq!(world.free(), [70_000_000; 2]);
}

#[test]
fn an_update_in_place_is_admitted_too_and_a_refused_one_changes_nothing() {
    let mut world = World::new();
    world.add("first", 70_000_000);
    world.add("second", 20_000_000);
    let limits = |world: &World| world.node.agent().port("second").unwrap().limits;
    let update = |world: &World, rate| {
        let network = world.network(rate).with("updateExisting", Value::Bool(true));
        network.add(world.node.namespace(), world.sandboxes[1].container())
    };
    let refused: Refusal = update(&world, 31_000_000).unwrap_err().downcast().unwrap();
    assert!(refused.code == 101 && refused.message.contains("30M of 100M"), "{refused}");
    assert_eq!((limits(&world).egress, world.free()), (Some(20_000_000), [10_000_000; 2]));
    update(&world, 30_000_000).unwrap();
    assert_eq!((limits(&world).egress, world.free()), (Some(30_000_000), [0; 2]));
}

#[test]
fn status_says_when_nothing_is_left_to_those_that_ask_for_some() {
    let mut world = World::new();
    assert_eq!(world.status(Some(CAPACITY)), None);
    world.add("first", CAPACITY);
    let refused = world.status(Some(CAPACITY)).unwrap();
    assert!(refused.code == 50 && refused.message.contains("no egress bandwidth is left"), "{refused}");
    assert_eq!(world.status(None), None, "an ADD without a rate works");
    world.sandboxes[0].delete(&world.node, &world.network(CAPACITY)).unwrap();
    assert_eq!(world.status(Some(CAPACITY)), None);
}
