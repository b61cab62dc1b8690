//! `viaAgent` with the agent itself: a runtime runs the plugin, and the agent's service does the calls.

use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use shunt_lab::{Container, Inventory, Network};

use crate::world::{World, eventually};

/// The world's network as a runtime has it, done by the plugin or by the service.
fn network(world: &World, is_handed_over: bool) -> Network {
    let mut plugin = world.shunt();
    plugin["agentSocket"] = json!(world.node.agent().socket());
    if is_handed_over {
        plugin["viaAgent"] = json!(world.socket());
        // The agent does it, and knows where it listens.
        plugin["agentSocket"] = json!("/nowhere/agent.sock");
    }
    Network::new("pods", world.node.plugins(), plugin)
}

/// The result, the node, the container and the agent's port, without what is another one's each time.
fn seen(world: &World, container: &Container, result: &Value) -> Vec<String> {
    let interfaces = result["interfaces"].as_array().unwrap();
    let end = interfaces[1]["name"].as_str().unwrap();
    let steady = |text: &str| {
        // A pin's name ends with a number of the moment.
        let text = text.trim_end_matches(|end: char| end.is_ascii_digit() && text.starts_with("pin "));
        let macs = interfaces.iter().filter_map(|interface| interface["mac"].as_str());
        macs.fold(text.replace(end, "HOST"), |text, mac| text.replace(mac, "MAC"))
    };
    let inside = Inventory::of_namespace(container.namespace()).unwrap();
    let none = Inventory::default();
    let port = world.node.agent().port(container.id()).unwrap();
    let mut port = serde_json::to_value(&port).unwrap();
    for varying in ["host_ifindex", "from", "to"] {
        port[varying] = Value::Null;
    }
    let mut lines = vec![steady(&format!("{result:#}")), steady(&port.to_string())];
    lines.extend(
        inside
            .since(&none)
            .iter()
            .chain(&world.node.inventory().unwrap().since(&none))
            .map(|line| steady(line)),
    );
    lines
}

#[test]
fn an_attachment_is_the_same_whoever_makes_it_and_either_takes_it_down() {
    let seen_of = |adds: bool, deletes: bool| {
        let mut world = World::start();
        world.container("one");
        let (node, container) = (world.node.namespace(), &world.containers[0]);
        let added = network(&world, adds).add(node, container).unwrap();
        network(&world, !adds).check(node, container, &added.result).unwrap();
        let seen = seen(&world, container, &added.result);
        network(&world, deletes).del(node, container, &added.result).unwrap();
        world.assert_empty();
        let root = world.lab.root().display().to_string();
        seen.into_iter().map(|line| line.replace(&root, "/run/lab")).collect::<Vec<_>>()
    };
    let plain = seen_of(false, true);
    assert_eq!(seen_of(true, false), plain);
}

#[test]
fn a_crowd_of_plugins_is_served_at_a_time() {
    const CROWD: usize = 100;
    let mut world = World::start();
    for number in 0..CROWD {
        world.container(&format!("c{number}"));
    }
    let network = network(&world, true);
    let (node, containers) = (world.node.namespace(), &world.containers);
    let results: Vec<Value> = thread::scope(|scope| {
        let network = &network;
        let calls: Vec<_> = containers
            .iter()
            .map(|container| scope.spawn(move || network.add(node, container).unwrap().result))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let addresses: std::collections::BTreeSet<_> =
        results.iter().map(|result| result["ips"][0]["address"].to_string()).collect();
    assert_eq!(addresses.len(), CROWD);
    for (container, result) in containers.iter().zip(&results) {
        network.del(node, container, result).unwrap();
    }
    world.assert_empty();
}

/// A plugin that calls the next one itself, as meta-plugins do.
const DELEGATING: &str = r#"sed 's/"type":"delegating"/"type":"shunt"/' | "${CNI_PATH%%:*}/shunt""#;

/// The service holds the attachment for the chain: what its programs hand over would wait for the chain to end.
#[test]
fn a_program_of_the_service_s_chain_does_not_hand_over_to_it() {
    let mut world = World::start();
    world.write_plugin("delegating", DELEGATING);
    let mut plugin = world.shunt();
    plugin["type"] = json!("delegating");
    plugin["agentSocket"] = json!(world.node.agent().socket());
    plugin["viaAgent"] = json!(world.socket());
    let list = world.list(&[plugin]);
    let asked = world.container_of("one", &list);
    let mut client = world.client();
    let begun = std::time::Instant::now();
    client.add(&asked).unwrap();
    client.delete(&asked).unwrap();
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(30), "{took:?}");
    world.assert_empty();
}

/// The runtime asks once more, as it does with every plugin that has failed.
#[test]
fn plugins_whose_agent_is_restarted_fail_and_can_be_repeated() {
    const CALLS: usize = 50;
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut world = World::start();
        for number in 0..CALLS {
            world.container(&format!("c{number}"));
        }
        let network = network(&world, true);
        let (node, agent) = (world.node.namespace(), world.node.agent());
        let id = Pid::from_raw(i32::try_from(agent.id().unwrap()).unwrap());
        let added: Vec<bool> = thread::scope(|scope| {
            let network = &network;
            let add = |container| scope.spawn(move || network.add(node, container).is_ok());
            let calls: Vec<_> = world.containers.iter().map(add).collect();
            eventually("some are done", || agent.ports().is_ok_and(|ports| ports.len() > 3));
            kill(id, signal).unwrap();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        println!("{signal}: {} of {CALLS} were done before", added.iter().filter(|is| **is).count());
        world.node.agent_mut().kill().unwrap();
        world.node.restart_agent().unwrap();
        let node = world.node.namespace();
        for (container, is_added) in world.containers.iter().zip(added) {
            if !is_added {
                network.del(node, container, &Value::Null).unwrap();
                network.add(node, container).unwrap();
            }
            assert!(world.node.agent().port(container.id()).is_ok());
            network.del(node, container, &Value::Null).unwrap();
        }
        world.assert_empty();
    }
}
