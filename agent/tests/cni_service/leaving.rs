//! An agent that ends first answers the calls that it has begun.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use shunt_cni::proto::v1::{EventKind, VersionRequest, WatchRequest};

use crate::world::World;

/// Takes its time at ADD.
const SLOW: &str = r#"
[ "$CNI_COMMAND" = ADD ] || exit 0
touch "$0.begun"
sleep 0.7
sed 's/.*"prevResult"://; s/,"type":"slow".*//'
"#;

/// The last plugin asks the agent by its socket when the agent has been told to leave.
#[test]
fn an_add_that_was_begun_is_answered_before_the_agent_s_own_socket_goes() {
    let mut world = World::start();
    world.write_plugin("slow", SLOW);
    let limits = json!({ "type": "shunt-bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000 });
    let list = world.list(&[world.shunt(), json!({ "type": "slow" }), limits]);
    let asked = world.container_of("one", &list);
    let begun = world.lab.root().join("foreign/slow.begun");
    let id = Pid::from_raw(i32::try_from(world.node.agent().id().unwrap()).unwrap());
    let client = world.client();
    let took = client.runtime.block_on(async {
        let (mut stub, request) = (client.stub.clone(), asked.add());
        let call = tokio::spawn(async move { stub.add(request).await });
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let told = Instant::now();
        kill(id, Signal::SIGTERM).unwrap();
        call.await.unwrap().expect("it is answered");
        told.elapsed()
    });
    println!("answered {took:?} after the agent was told to leave");
    world.node.agent_mut().terminate().unwrap();
    world.node.restart_agent().unwrap();
    let mut client = world.client();
    client.check(&asked).unwrap();
    client.delete(&asked).unwrap();
    world.assert_empty();
}

#[test]
fn watchers_hear_the_end_and_keep_no_agent_from_it() {
    let mut world = World::start();
    let mut client = world.client();
    let mut events =
        client.runtime.block_on(client.stub.watch(WatchRequest::default())).unwrap().into_inner();
    let first = client.runtime.block_on(events.message()).unwrap().unwrap();
    assert_eq!(first.kind(), EventKind::Watching);
    client.runtime.block_on(client.stub.version(VersionRequest {})).unwrap();
    let begun = Instant::now();
    let id = Pid::from_raw(i32::try_from(world.node.agent().id().unwrap()).unwrap());
    kill(id, Signal::SIGTERM).unwrap();
    let end = client.runtime.block_on(events.message());
    assert!(matches!(end, Ok(None)), "{end:?}");
    world.node.agent_mut().terminate().unwrap();
    assert!(begun.elapsed() < Duration::from_millis(1400), "{:?}", begun.elapsed());
}
