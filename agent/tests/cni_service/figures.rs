//! How long calls take by the service and by exec, by turns. `SHUNT_FIGURE_ROUNDS` says how many rounds there are: the documentation's figures
//! are those of 60 with programs of a release build.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_cni::proto::v1::{EventKind, WatchRequest};
use shunt_lab::{Container, Network};
use tokio::time::timeout;

use crate::client::{Asked, Client};
use crate::world::World;

/// Calls at a time.
const CROWD: usize = 200;

fn rounds(few: usize) -> usize {
    std::env::var("SHUNT_FIGURE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

/// The network of the world as a runtime that execs has it.
fn executed(world: &World) -> Network {
    let mut plugin = world.shunt();
    plugin["agentSocket"] = json!(world.node.agent().socket());
    Network::new("pods", world.node.plugins(), plugin)
}

/// The median, and the quartiles beside it.
fn quartiles(taken: &mut [Duration]) -> [Duration; 3] {
    taken.sort();
    [1, 2, 3].map(|quarter| taken[(taken.len() * quarter / 4).min(taken.len() - 1)])
}

fn say(what: &str, taken: &mut [Duration]) -> Duration {
    let [lower, median, upper] = quartiles(taken);
    println!("{what}: median {median:.2?}, quartiles {lower:.2?} to {upper:.2?}, {} rounds", taken.len());
    median
}

/// Adds and deletes a container; how long the Add took.
fn exec(world: &World, network: &Network, container: &Container) -> Duration {
    let node = world.node.namespace();
    let added = network.add(node, container).unwrap();
    network.del(node, container, &added.result).unwrap();
    added.took
}

fn serve(client: &mut Client, asked: &Asked) -> Duration {
    let begun = Instant::now();
    client.add(asked).unwrap();
    let took = begun.elapsed();
    client.delete(asked).unwrap();
    took
}

#[test]
fn one_add_by_the_service_and_by_exec() {
    let mut world = World::start();
    let asked = world.container("one");
    let plain = executed(&world);
    let handed = plain.clone().with("viaAgent", json!(world.socket()));
    let mut client = world.client();
    // The first of each makes what the later ones find.
    serve(&mut client, &asked);
    exec(&world, &plain, &world.containers[0]);
    let mut taken = [const { Vec::new() }; 3];
    for round in 0..rounds(9) {
        for turn in 0..3 {
            let way = (round + turn) % 3;
            taken[way].push(match way {
                0 => serve(&mut client, &asked),
                1 => exec(&world, &plain, &world.containers[0]),
                _ => exec(&world, &handed, &world.containers[0]),
            });
        }
    }
    let [served, executed, handed] = &mut taken;
    let served = say("one Add by gRPC", served);
    let executed = say("one Add by exec", executed);
    let handed = say("one Add by exec with viaAgent", handed);
    let ratio = |one: Duration| one.as_secs_f64() / executed.as_secs_f64();
    println!("by gRPC {:.3}, with viaAgent {:.3} of the exec's time", ratio(served), ratio(handed));
    // Wide enough for a busy machine.
    assert!(served < executed * 2 + Duration::from_millis(20));
    world.assert_empty();
}

#[test]
#[ignore = "on a busy machine, with programs of a debug build, two hundred execs keep each other waiting until some give up"]
fn two_hundred_adds_at_a_time_by_the_service_and_by_exec() {
    let mut world = World::start();
    let crowd: Vec<Asked> = (0..CROWD).map(|number| world.container(&format!("c{number}"))).collect();
    let network = executed(&world);
    let mut client = world.client();
    let (node, containers) = (world.node.namespace(), &world.containers);
    let mut taken = [const { Vec::new() }; 2];
    for round in 0..rounds(2).div_ceil(6).max(2) {
        for turn in 0..2 {
            let begun = Instant::now();
            let way = (round + turn) % 2;
            match way {
                0 => client.runtime.block_on(async {
                    let add = |asked: &Asked| {
                        let (mut stub, request) = (client.stub.clone(), asked.add());
                        tokio::spawn(async move { stub.add(request).await })
                    };
                    for call in crowd.iter().map(add).collect::<Vec<_>>() {
                        call.await.unwrap().unwrap();
                    }
                }),
                _ => thread::scope(|scope| {
                    for container in containers {
                        scope.spawn(|| network.add(node, container).unwrap());
                    }
                }),
            }
            taken[way].push(begun.elapsed());
            for (asked, container) in crowd.iter().zip(containers) {
                match way {
                    0 => client.delete(asked).unwrap(),
                    _ => drop(network.del(node, container, &serde_json::Value::Null).unwrap()),
                }
            }
        }
    }
    let [served, executed] = &mut taken;
    let served = say("200 Adds at a time by gRPC", served);
    let executed = say("200 Adds at a time by exec", executed);
    println!("by gRPC {:.3} of the execs' time", served.as_secs_f64() / executed.as_secs_f64());
    assert!(served < executed * 2);
    world.assert_empty();
}

/// When an event is heard, by a thread that does nothing else.
fn hear(socket: &std::path::Path, events: usize) -> thread::JoinHandle<Vec<Instant>> {
    let (socket, (ready, is_ready)) = (socket.to_owned(), std::sync::mpsc::channel());
    let hearing = thread::spawn(move || {
        let Client { runtime, mut stub } = Client::connect(&socket);
        runtime.block_on(async {
            let mut told = stub.watch(WatchRequest::default()).await.unwrap().into_inner();
            let mut heard = Vec::new();
            while heard.len() < events {
                let next = timeout(Duration::from_secs(60), told.message()).await;
                match next.unwrap().unwrap().unwrap().kind() {
                    EventKind::Watching => ready.send(()).unwrap(),
                    EventKind::Attached => heard.push(Instant::now()),
                    _ => {}
                }
            }
            heard
        })
    });
    is_ready.recv().unwrap();
    hearing
}

#[test]
fn an_event_reaches_a_watcher_at_once() {
    let mut world = World::start();
    let asked = world.container("one");
    let mut client = world.client();
    let count = rounds(20);
    let hearing = hear(&world.socket(), count);
    let mut answered = Vec::new();
    for _ in 0..count {
        client.add(&asked).unwrap();
        answered.push(Instant::now());
        client.delete(&asked).unwrap();
    }
    // An attachment happens before its Add is answered: what is heard first counts as at once.
    let heard = hearing.join().unwrap();
    let mut late: Vec<_> = heard
        .iter()
        .zip(&answered)
        .map(|(heard, answered)| heard.saturating_duration_since(*answered))
        .collect();
    say("an event after the answer", &mut late);
    println!("the latest: {:.2?}", late[late.len() - 1]);
    assert!(late[late.len() - 1] < Duration::from_millis(50), "{late:?}");
    world.assert_empty();
}

fn resident(world: &World) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", world.node.agent().id().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Watchers that never read, and an Add with and without them.
#[test]
fn watchers_that_never_read_cost_nobody_anything() {
    const WATCHERS: usize = 60;
    let mut world = World::start();
    let asked = world.container("one");
    let (mut client, socket) = (world.client(), world.socket());
    serve(&mut client, &asked);
    let mut taken = [const { Vec::new() }; 2];
    let mut grown = 0;
    for _ in 0..rounds(9) {
        taken[0].push(serve(&mut client, &asked));
        let before = resident(&world);
        let silent: Vec<_> = (0..WATCHERS)
            .map(|_| {
                let Client { runtime, mut stub } = Client::connect(&socket);
                let told = runtime.block_on(stub.watch(WatchRequest::default())).unwrap();
                (runtime, told)
            })
            .collect();
        taken[1].push(serve(&mut client, &asked));
        grown = grown.max(resident(&world).saturating_sub(before));
        drop(silent);
        thread::sleep(Duration::from_millis(30));
    }
    let [without, with] = &mut taken;
    let without = say("an Add without watchers", without);
    let with = say("an Add beside 60 watchers that never read", with);
    println!(
        "{:.3} of the time without; {grown} kB more memory at most",
        with.as_secs_f64() / without.as_secs_f64()
    );
    assert!(with < without * 2 + Duration::from_millis(20));
    world.assert_empty();
}
