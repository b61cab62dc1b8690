//! An agent that ends while it is asked.

use std::fs;
use std::thread;

use serde_json::json;

use crate::client::{Asked, Client, OfCni as _};
use crate::waiting::SLOW;
use crate::world::{World, eventually};

const CALLS: usize = 50;

#[test]
fn an_agent_that_is_restarted_under_fifty_calls_leaves_nothing_that_a_delete_cannot_take() {
    for killed in [false, true] {
        let mut world = World::start();
        let crowd: Vec<Asked> = (0..CALLS).map(|number| world.container(&format!("c{number}"))).collect();
        let socket = world.socket();
        let calls: Vec<_> = crowd
            .iter()
            .cloned()
            .map(|asked| {
                let socket = socket.clone();
                thread::spawn(move || Client::connect(&socket).add(&asked).is_ok())
            })
            .collect();
        eventually("some are done", || world.cached().len() > 3);
        if killed {
            world.node.agent_mut().kill().unwrap();
        } else {
            world.node.agent_mut().terminate().unwrap();
        }
        let done = calls.into_iter().map(|call| call.join().unwrap_or(false)).filter(|is| *is).count();
        world.node.restart_agent().unwrap();
        let mut client = world.client();
        // By asking again with the same key clients learn what became of it.
        for asked in &crowd {
            client.add(asked).unwrap();
            client.check(asked).unwrap();
        }
        println!("killed {killed}: {done} of {CALLS} calls were answered before");
        for asked in &crowd {
            client.delete(asked).unwrap();
        }
        world.assert_empty();
    }
}

#[test]
fn an_add_that_an_agent_was_killed_in_is_done_when_it_is_asked_for_again() {
    let mut world = World::start();
    world.write_plugin("slow", SLOW);
    let list = world.list(&[world.shunt(), json!({ "type": "slow" })]);
    let asked = world.container_of("one", &list);
    let [begun, go] = ["begun", "go"].map(|what| world.lab.root().join(format!("foreign/slow.{what}")));
    let (socket, first) = (world.socket(), asked.clone());
    let call = thread::spawn(move || Client::connect(&socket).add(&first).is_ok());
    eventually("it is in the middle", || begun.exists());
    world.node.agent_mut().kill().unwrap();
    assert!(!call.join().unwrap());
    fs::write(go, "").unwrap();
    world.node.restart_agent().unwrap();
    let mut client = world.client();
    assert_eq!(client.check(&asked).unwrap_err().of_cni().code, 3);
    let result = client.add(&asked).unwrap();
    client.check(&asked).unwrap();
    assert_eq!(client.add(&asked).unwrap(), result);
    client.delete(&asked).unwrap();
    world.assert_empty();
}
