//! Containers come and go: twice, without their namespace, after a crash, while the agent is away. Nothing is left of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Container, Inventory, Lab, Node};

use crate::podman::{Netavark, netns, request};

/// A node with the network `pods`, and a container that is not attached yet.
struct Stage {
    container: Option<Container>,
    network: Value,
    before: Inventory,
    netavark: Netavark,
    node: Node,
    lab: Lab,
}

const IPS: [&str; 2] = ["10.77.0.5", "fd77::5"];

impl Stage {
    /// None where there is no netavark.
    fn new() -> Option<Self> {
        let lab = Lab::new().unwrap();
        let node = Node::start(&lab, "node").unwrap();
        let netavark = Netavark::of(&lab, &node, true)?;
        let network = netavark.create(node.namespace(), 0, &json!({})).unwrap();
        let container = Some(Container::create(&lab, "c1").unwrap());
        let mut stage = Self { container, network, before: node.inventory().unwrap(), netavark, node, lab };
        // netavark keeps its own file of what it has set up, and the node's forwarding stays on.
        stage.call("setup", &stage.request(8080)).unwrap();
        stage.call("teardown", &stage.request(8080)).unwrap();
        stage.before = stage.node.inventory().unwrap();
        Some(stage)
    }

    fn request(&self, port: u16) -> Value {
        let published =
            json!({ "host_ip": "", "host_port": port, "container_port": 80, "protocol": "tcp", "range": 1 });
        request(&self.network, "c1", &IPS, &[published])
    }

    fn call(&self, verb: &str, request: &Value) -> Result<Value, String> {
        let netns = self.container.as_ref().map_or("/run/netns/none", netns);
        self.netavark.run(self.node.namespace(), &[verb, netns], request)
    }

    fn attachments(&self) -> usize {
        self.node.agent().status().unwrap().attachments
    }

    /// The agent removes pins after the kernel has taken their link away.
    fn assert_clean(&self) {
        let begun = Instant::now();
        while !self.node.inventory().unwrap().since(&self.before).is_empty()
            && begun.elapsed() < Duration::from_secs(10)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.node.inventory().unwrap().since(&self.before), Vec::<String>::new());
        assert_eq!(self.attachments(), 0);
    }
}

#[test]
fn the_agent_knows_the_container_by_its_name_and_a_second_setup_changes_nothing() {
    let Some(stage) = Stage::new() else { return };
    stage.call("setup", &stage.request(8080)).unwrap();
    let ports = stage.node.agent().ports().unwrap();
    assert_eq!((&*ports[0].container, &*ports[0].network, &*ports[0].pod), ("c1", "pods", "c1"));
    let refused = stage.call("setup", &stage.request(8080)).unwrap_err();
    assert!(refused.contains("is attached already"), "{refused}");
    assert_eq!(stage.node.agent().ports().unwrap()[0].host_ifname, ports[0].host_ifname);
    stage.call("teardown", &stage.request(8080)).unwrap();
    stage.assert_clean();
    stage.call("teardown", &stage.request(8080)).unwrap();
    stage.assert_clean();
}

#[test]
fn a_setup_that_is_refused_leaves_nothing() {
    let Some(mut stage) = Stage::new() else { return };
    stage.call("setup", &stage.request(8080)).unwrap();
    let first = stage.container.replace(Container::create(&stage.lab, "c2").unwrap());
    let published = stage.request(8080)["port_mappings"][0].clone();
    let other = request(&stage.network, "c2", &["10.77.0.6"], &[published]);
    let refused = stage.call("setup", &other).unwrap_err();
    assert!(refused.contains("plugin \"shunt\" failed") && refused.contains("(code 102)"), "{refused}");
    assert_eq!(stage.attachments(), 1);
    for (ips, named) in [(&["192.0.2.7"][..], "none of the network's subnets"), (&[], "no address was given")]
    {
        let refused = stage.call("setup", &request(&stage.network, "c2", ips, &[])).unwrap_err();
        assert!(refused.contains(named), "{refused}");
    }
    stage.container = first;
    stage.call("teardown", &stage.request(8080)).unwrap();
    stage.assert_clean();
}

#[test]
fn the_bridge_goes_with_the_networks_last_container() {
    let Some(mut stage) = Stage::new() else { return };
    stage.call("setup", &stage.request(8080)).unwrap();
    let first = stage.container.replace(Container::create(&stage.lab, "c2").unwrap());
    let other = request(&stage.network, "c2", &["10.77.0.6"], &[]);
    stage.call("setup", &other).unwrap();
    let has_bridge = |stage: &Stage| stage.node.namespace().command("ip", &["link", "show", "br0"]).is_ok();
    stage.call("teardown", &other).unwrap();
    assert!(has_bridge(&stage), "the first container is on it");
    stage.container = first;
    stage.call("teardown", &stage.request(8080)).unwrap();
    assert!(!has_bridge(&stage), "podman removes a network without a word");
    stage.call("setup", &stage.request(8080)).unwrap();
    stage.call("teardown", &stage.request(8080)).unwrap();
    stage.assert_clean();
}

#[test]
fn a_container_whose_namespace_is_gone_is_torn_down() {
    let Some(mut stage) = Stage::new() else { return };
    stage.call("setup", &stage.request(8080)).unwrap();
    drop(stage.container.take());
    stage.call("teardown", &stage.request(8080)).unwrap();
    stage.assert_clean();
}

#[test]
fn without_an_agent_a_setup_fails_and_a_teardown_does_not() {
    let Some(mut stage) = Stage::new() else { return };
    stage.call("setup", &stage.request(8080)).unwrap();
    stage.node.agent_mut().kill().unwrap();
    let first = stage.container.replace(Container::create(&stage.lab, "c2").unwrap());
    let other = request(&stage.network, "c2", &["10.77.0.6"], &[]);
    let refused = stage.call("setup", &other).unwrap_err();
    assert!(refused.contains("(code 11)"), "{refused}");
    stage.container = first;
    stage.call("teardown", &stage.request(8080)).unwrap();
    stage.node.restart_agent().unwrap();
    stage.assert_clean();
}

#[test]
fn networks_that_cannot_be_are_refused_by_create_with_their_cure() {
    let Some(stage) = Stage::new() else { return };
    let node = stage.node.namespace();
    for (more, named) in [
        (json!({ "subnets": null }), "--subnet"),
        (json!({ "ipam_options": { "driver": "dhcp" } }), "host-local or none"),
        (json!({ "options": { "isolate": "true" } }), "strict"),
        (json!({ "options": { "mtuu": "1400" } }), "mtuu"),
    ] {
        let refused = stage.netavark.create(node, 1, &more).unwrap_err();
        assert!(refused.contains(named), "{more}: {refused}");
    }
}
