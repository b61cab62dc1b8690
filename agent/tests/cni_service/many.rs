//! Many calls at a time, and how long they take.

use std::fs;
use std::time::{Duration, Instant};

use shunt_cni::proto::v1::StatusRequest;

use crate::client::{Asked, stub};
use crate::world::World;

/// Containers of one crowd.
const CROWD: usize = 100;

/// The agent's memory and open files.
fn footprint(world: &World) -> (u64, usize) {
    let id = world.node.agent().id().unwrap();
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (kilobytes, fs::read_dir(format!("/proc/{id}/fd")).unwrap().count())
}

/// The network namespaces of the agent's threads.
fn namespaces(world: &World) -> Vec<std::path::PathBuf> {
    let id = world.node.agent().id().unwrap();
    let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let mut found: Vec<_> =
        tasks.filter_map(|task| fs::read_link(task.unwrap().path().join("ns/net")).ok()).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn a_crowd_at_a_time_is_attached_and_leaves_no_thread_file_or_namespace() {
    let mut world = World::start();
    let crowd: Vec<Asked> = (0..CROWD).map(|number| world.container(&format!("c{number}"))).collect();
    let mut client = world.client();
    client.add(&crowd[0]).unwrap();
    client.delete(&crowd[0]).unwrap();
    let (before, own) = (footprint(&world), namespaces(&world));
    let begun = Instant::now();
    client.runtime.block_on(async {
        let calls: Vec<_> = crowd
            .iter()
            .map(|asked| {
                let (mut stub, request) = (client.stub.clone(), asked.add());
                tokio::spawn(async move { stub.add(request).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
    });
    let took = begun.elapsed();
    assert_eq!(world.cached().len(), CROWD);
    let addresses: std::collections::BTreeSet<String> = crowd
        .iter()
        .map(|asked| client.add(asked).unwrap()["ips"][0]["address"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(addresses.len(), CROWD, "each has an address of its own");
    client.collect(crowd[0].network.clone(), Some(&[])).unwrap();
    world.assert_empty();
    let after = footprint(&world);
    println!("{CROWD} Adds at a time: {took:?}; memory {} kB, then {} kB", before.0, after.0);
    assert_eq!(namespaces(&world), own);
    assert!(after.1 <= before.1 + 8, "{} files are open, {} were", after.1, before.1);
}

#[test]
fn a_thousand_calls_at_a_time_are_answered_in_bounded_memory() {
    let mut world = World::start();
    let network = world.container("one").network;
    let socket = world.socket();
    let client = world.client();
    let before = footprint(&world).0;
    let most = client.runtime.block_on(async {
        let stub = stub(&socket).await;
        let calls: Vec<_> = (0..1_000)
            .map(|_| {
                let (mut stub, request) = (stub.clone(), StatusRequest { network: Some(network.clone()) });
                tokio::spawn(async move { stub.status(request).await })
            })
            .collect();
        let mut most = 0;
        for call in calls {
            call.await.unwrap().unwrap();
            most = most.max(footprint(&world).0);
        }
        most
    });
    println!("1,000 calls at a time: {before} kB of memory before, {most} kB at most");
    assert!(most < before + (32 << 10), "{most} kB of memory, {before} before");
}

/// One Add after the other, by the service and by exec.
#[test]
fn an_add_takes_no_longer_than_an_exec_does() {
    const ROUNDS: usize = 20;
    let mut world = World::start();
    let asked = world.container("one");
    let network = world.node.network("pods", "cni0", &["10.78.0.0/16"]);
    let (node, mut client) = (world.node.namespace(), world.client());
    let mut taken = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        client.add(&asked).unwrap();
        taken[0].push(begun.elapsed());
        client.delete(&asked).unwrap();
        let begun = Instant::now();
        let executed = network.add(node, &world.containers[0]).unwrap();
        taken[1].push(begun.elapsed());
        network.del(node, &world.containers[0], &executed.result).unwrap();
    }
    let median = |taken: &mut Vec<Duration>| {
        taken.sort();
        taken[ROUNDS / 2]
    };
    let [served, executed] = &mut taken;
    let (served, executed) = (median(served), median(executed));
    println!("an Add: {served:?} by the service, {executed:?} by exec (medians of {ROUNDS})");
    // Wide enough for a busy machine: the figures are the documentation's.
    assert!(served < executed * 2 + Duration::from_millis(20), "{served:?}, and {executed:?} by exec");
    world.assert_empty();
}
