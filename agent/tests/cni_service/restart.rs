//! An agent that ends while it is asked.

use std::thread;

use crate::client::{Asked, Client};
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
            if client.add(asked).is_err() {
                client.delete(asked).unwrap();
                client.add(asked).unwrap();
            }
            client.check(asked).unwrap();
        }
        println!("killed {killed}: {done} of {CALLS} calls were answered before");
        for asked in &crowd {
            client.delete(asked).unwrap();
        }
        world.assert_empty();
    }
}
