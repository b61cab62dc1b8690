//! An uplink that carries the node's own addresses: they move to the bridge with it and come back, and nobody who talks with the
//! node notices.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::cni::Refusal;
use shunt_lab::{Container, Conversation, Echo, Namespace, Protocol, patience};

use crate::estate::{self, estate, mac};
use crate::stage::Stage;
use crate::uplinks;

/// How long the agent may take to put something back.
const PATIENCE: Duration = Duration::from_secs(10);

/// A bridge's own Ethernet address.
const OWN: &str = "02:00:00:00:0b:01";

struct Scene {
    stage: Stage,
    outside: Namespace,
    echoes: [Echo; 3],
    talks: Vec<Conversation>,
    /// What `up0` has at first.
    before: Vec<String>,
    _side: Namespace,
}

impl Scene {
    fn set() -> Self {
        let (mut stage, outside) = uplinks::stage();
        let side = stage.lab.namespace("side").unwrap();
        let node = stage.node.namespace();
        estate::side(node, &side);
        estate::settle(node, &outside, &estate::MUCH);
        let echoes = estate::echoes(node, &outside);
        let before = estate(node, "up0");
        stage.empty = stage.node.inventory().unwrap();
        stage.network = stage.network.clone().with("uplinkMoveAddress", json!(true));
        let mut scene = Self { stage, outside, echoes, talks: Vec::new(), before, _side: side };
        scene.talks = scene.open();
        scene.chat();
        scene
    }

    fn node(&self) -> &Namespace {
        self.stage.node.namespace()
    }

    /// From the node by both families' default routes, and to the node, each by TCP and UDP.
    fn open(&self) -> Vec<Conversation> {
        let ways: [(&Namespace, SocketAddr); 3] = [
            (self.node(), self.echoes[0].address()),
            (self.node(), self.echoes[1].address()),
            (&self.outside, self.echoes[2].address()),
        ];
        let mut talks = Vec::new();
        for (from, to) in ways {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                talks.push(Conversation::open(from, protocol, to).unwrap());
            }
        }
        talks
    }

    /// The old conversations go on, and new ones begin.
    fn chat(&mut self) {
        let mut talks = self.open();
        for talk in self.talks.iter_mut().chain(&mut talks) {
            talk.chat(5, 900)
                .unwrap_or_else(|error| panic!("{error:#}\n{}", self.stage.node.agent().log_tail()));
        }
    }

    fn assert_moved(&self) {
        let (on_bridge, left) = (estate(self.node(), "cni0"), estate(self.node(), "up0"));
        let missing: Vec<_> = self.before.iter().filter(|line| !on_bridge.contains(line)).collect();
        assert!(missing.is_empty(), "missing {missing:#?} in {on_bridge:#?}");
        assert_eq!(left, Vec::<String>::new());
        assert_eq!(mac(self.node(), "cni0"), mac(self.node(), "up0"));
    }

    fn relocations(&self) -> Vec<std::fs::DirEntry> {
        let directory = self.stage.node.agent().state().join("relocations");
        std::fs::read_dir(directory).into_iter().flatten().flatten().collect()
    }

    /// Everything is as it was before the first container, within the agent's patience.
    fn assert_home(&mut self) {
        let begun = Instant::now();
        while estate(self.node(), "up0") != self.before && begun.elapsed() < patience(PATIENCE) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(estate(self.node(), "up0"), self.before, "{}", self.stage.node.agent().log_tail());
        let on_bridge = estate(self.node(), "cni0");
        let left: Vec<_> = on_bridge.iter().filter(|line| self.before.contains(line)).collect();
        assert!(left.is_empty(), "{left:#?}");
        self.chat();
    }

    fn delete_all(&mut self) {
        let network = self.stage.network.clone();
        for sandbox in self.stage.sandboxes.drain(..) {
            sandbox.delete(&self.stage.node, &network).unwrap();
        }
    }

    fn verb(&self, verb: &str) -> Result<Value, Refusal> {
        let container = Container::create(&self.stage.lab, &format!("for-{}", verb.to_lowercase())).unwrap();
        let done = self.stage.network.verb(verb, self.node(), &container);
        done.map_err(|error| error.downcast::<Refusal>().unwrap())
    }
}

#[test]
fn everything_that_the_node_has_on_its_uplink_moves_to_the_bridge_and_back_under_its_connections() {
    let mut scene = Scene::set();
    scene.verb("VALIDATE").unwrap();
    scene.stage.add("one");
    let own = mac(scene.node(), "cni0");
    scene.assert_moved();
    scene.chat();
    let status = scene.stage.node.agent().status().unwrap();
    let [moved] = &status.relocations[..] else { panic!("{status:?}") };
    assert_eq!((moved.uplink.as_str(), moved.bridge.as_str(), moved.complete), ("up0", "cni0", true));
    assert!(moved.addresses.contains(&"192.0.2.9/24".to_owned()), "{moved:?}");
    let sandbox = &scene.stage.sandboxes[0];
    assert_eq!(sandbox.attachment().result["interfaces"][0]["mac"], own.as_str());
    scene.stage.network.check(scene.node(), sandbox.container(), &sandbox.attachment().result).unwrap();

    // A second container, another agent: nothing moves any more.
    scene.stage.add("two");
    scene.assert_moved();
    scene.stage.node.agent_mut().kill().unwrap();
    scene.chat();
    scene.stage.node.restart_agent().unwrap();
    scene.assert_moved();
    scene.stage.assert_talk(0, 1);
    // What comes later stays where somebody puts it, and what somebody takes away does not come back.
    for text in [
        "address add 198.18.7.1/24 dev up0",
        "address add 198.18.8.1/24 dev cni0",
        "address delete 198.19.0.9 peer 198.19.0.1/32 dev cni0",
    ] {
        scene.node().command("ip", &text.split(' ').collect::<Vec<_>>()).unwrap();
    }
    scene.stage.add("three");
    scene.chat();
    scene.before.retain(|line| !line.contains("198.19.0.1"));
    let network = scene.stage.network.clone();
    let sandbox = scene.stage.sandboxes.remove(0);
    sandbox.delete(&scene.stage.node, &network).unwrap();
    let error = scene.verb("DEINIT").unwrap_err();
    assert_eq!(error.code, 11, "{error}");
    scene.chat();

    scene.delete_all();
    let later =
        |device| estate(scene.stage.node.namespace(), device).iter().any(|line| line.contains("198.18.8.1"));
    assert!(later("cni0") && !later("up0"));
    scene.before.extend(estate(scene.node(), "up0").into_iter().filter(|line| line.contains("198.18.7.")));
    scene.before.sort();
    scene.assert_home();
    assert_ne!(mac(scene.node(), "cni0"), own);
    assert!(scene.relocations().is_empty());
    scene.verb("DEINIT").unwrap();
    scene.assert_home();
}

#[test]
fn a_bridge_that_is_deleted_takes_no_address_of_the_node_along() {
    let mut scene = Scene::set();
    scene.node().command("ip", &["link", "add", "cni0", "address", OWN, "type", "bridge"]).unwrap();
    scene.stage.add("one");
    scene.node().command("ip", &["link", "delete", "cni0"]).unwrap();
    // It is made again, and is the uplink's again.
    let begun = Instant::now();
    let has_it_all = |scene: &Scene| {
        let on_bridge = estate(scene.node(), "cni0");
        scene.before.iter().all(|line| on_bridge.contains(line)) && estate(scene.node(), "up0").is_empty()
    };
    while !has_it_all(&scene) && begun.elapsed() < patience(PATIENCE) {
        std::thread::sleep(Duration::from_millis(20));
    }
    scene.assert_moved();
    scene.chat();
    scene.delete_all();
    scene.assert_home();
    assert_eq!(mac(scene.node(), "cni0"), OWN);
}

#[test]
fn the_last_container_may_go_without_the_agent_and_the_next_one_brings_everything_back() {
    let mut scene = Scene::set();
    scene.stage.add("one");
    scene.stage.node.agent_mut().kill().unwrap();
    scene.delete_all();
    scene.assert_moved();
    scene.chat();
    // As long as the uplink is its port the bridge stays, and with it the addresses.
    assert_eq!(scene.verb("DEINIT").unwrap_err().code, 11);
    scene.chat();
    scene.stage.node.restart_agent().unwrap();
    scene.assert_home();
    assert!(scene.relocations().is_empty());
}

#[test]
fn an_uplink_that_could_not_be_moved_without_harm_is_refused_and_nothing_changes() {
    let mut scene = Scene::set();
    let container = Container::create(&scene.stage.lab, "victim").unwrap();
    let refuse = |scene: &Scene, why: &str| {
        let error = scene.stage.network.add(scene.node(), &container).unwrap_err();
        let refusal = error.downcast_ref::<Refusal>().unwrap_or_else(|| panic!("{error:#}"));
        assert_eq!(refusal.code, 104, "{refusal}");
        assert!(refusal.to_string().contains(why), "{refusal}");
    };
    let run = |scene: &Scene, text: &str| {
        scene.node().command("ip", &text.split(' ').collect::<Vec<_>>()).unwrap();
    };
    run(&scene, "nexthop add id 7 via 192.0.2.1 dev up0");
    run(&scene, "route add 100.64.0.0/10 nhid 7");
    refuse(&scene, "100.64.0.0/10");
    run(&scene, "nexthop delete id 7");
    run(&scene, "link add cni0 type bridge stp_state 1");
    refuse(&scene, "spanning tree");
    run(&scene, "link delete cni0");
    let moving = scene.stage.network.clone();
    scene.stage.network = moving.with("uplinkMoveAddress", json!(false));
    refuse(&scene, "uplinkMoveAddress");
    assert!(scene.relocations().is_empty());
    assert_eq!(scene.stage.left(), Vec::<String>::new());
    scene.assert_home();
}

#[test]
fn the_nodes_addresses_are_in_no_gateways_way_and_forced_ones_take_none_of_them() {
    let mut scene = Scene::set();
    scene.stage.add("one");
    let network = scene.stage.network.clone();
    let other =
        scene.stage.node.network("other", "cni0", &["10.78.0.0/24"]).with("forceAddress", json!(true));
    scene.stage.network = other.clone();
    scene.stage.add("two");
    scene.assert_moved();
    scene.chat();
    scene.stage.sandboxes.pop().unwrap().delete(&scene.stage.node, &other).unwrap();
    scene.stage.network = network;
    scene.delete_all();
    scene.assert_home();
}

#[test]
fn an_add_that_is_killed_at_any_moment_cuts_nobody_off_and_its_del_brings_everything_back() {
    let mut scene = Scene::set();
    for (number, moment) in [1, 2, 3, 5, 8, 13].into_iter().enumerate() {
        let container = Container::create(&scene.stage.lab, &format!("killed-{number}")).unwrap();
        let (network, moment) = (scene.stage.network.clone(), Duration::from_millis(moment));
        network.interrupt("ADD", scene.node(), &container, &Value::Null, moment).unwrap();
        // The agent goes on with what it was asked for, and then answers. A datagram that is lost meanwhile is nobody's to repeat.
        scene.stage.node.agent().status().unwrap();
        scene.chat();
        network.del(scene.node(), &container, &Value::Null).unwrap();
        scene.assert_home();
    }
    assert!(scene.relocations().is_empty());
}
