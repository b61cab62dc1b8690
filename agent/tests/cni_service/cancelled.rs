//! Clients that do not wait.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tonic::Code;

use crate::client::{Asked, Client};
use crate::world::{World, eventually};

/// Tells that it has begun, and goes on when it may.
const SLOW: &str = r#"
[ "$CNI_COMMAND" = ADD ] || exit 0
touch "$0.begun"
while [ ! -e "$0.go" ]; do sleep 0.01; done
sed 's/.*"prevResult"://; s/,"type":"slow".*//'
"#;

/// The same of CHECK.
const SLOW_TO_CHECK: &str = r#"
[ "$CNI_COMMAND" = ADD ] && sed 's/.*"prevResult"://; s/,"type":"slow".*//'
[ "$CNI_COMMAND" = CHECK ] || exit 0
touch "$0.begun"
while [ ! -e "$0.go" ]; do sleep 0.01; done
"#;

fn slow() -> (World, Asked) {
    slow_by(SLOW)
}

fn slow_by(script: &str) -> (World, Asked) {
    let mut world = World::start();
    world.write_plugin("slow", script);
    let list = world.list(&[world.shunt(), json!({ "type": "slow" })]);
    let asked = world.container_of("one", &list);
    (world, asked)
}

#[test]
fn an_add_whose_client_has_gone_is_undone() {
    let (world, asked) = slow();
    let [begun, go] = ["begun", "go"].map(|what| world.lab.root().join(format!("foreign/slow.{what}")));
    let mut client = world.client();
    client.runtime.block_on(async {
        let call = client.stub.add(asked.add());
        let wait = async {
            while !begun.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            () = wait => {}
        }
    });
    drop(client);
    std::fs::write(go, "").unwrap();
    eventually("it is undone", || world.cached().is_empty() && world.left().is_empty());
    world.assert_empty();
    // Whoever comes after it waits until it is over.
    world.client().add(&asked).unwrap();
    world.client().delete(&asked).unwrap();
    world.assert_empty();
}

/// Does not wait for an Add, which then may go on.
fn add_too_late(world: &World, client: &mut Client, asked: &Asked) {
    let mut request = tonic::Request::new(asked.add());
    request.set_timeout(Duration::from_millis(300));
    let late =
        client.runtime.block_on(async { timeout(Duration::from_secs(30), client.stub.add(request)).await });
    assert_eq!(late.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    std::fs::write(world.lab.root().join("foreign/slow.go"), "").unwrap();
}

#[test]
fn a_deadline_ends_the_wait_and_undoes_the_add() {
    let (world, asked) = slow();
    let mut client = world.client();
    add_too_late(&world, &mut client, &asked);
    // Waits for the one that is undone.
    client.delete(&asked).unwrap();
    world.assert_empty();
}

#[test]
fn what_the_first_add_has_made_outlives_another_one_that_nobody_waits_for() {
    let (world, asked) = slow_by(SLOW_TO_CHECK);
    let mut client = world.client();
    let result = client.add(&asked).unwrap();
    add_too_late(&world, &mut client, &asked);
    // Waits for the one that was late.
    client.check(&asked).unwrap();
    assert_eq!(client.add(&asked).unwrap(), result);
    client.delete(&asked).unwrap();
    world.assert_empty();
}

/// A second Add that makes something: shunt's part is made anew where it may be, for CHECK cannot be asked.
#[test]
fn what_the_first_add_has_made_outlives_another_one_that_runs_the_chain_and_is_late() {
    let (mut world, _) = slow();
    let mut shunt = world.shunt();
    shunt["updateExisting"] = true.into();
    let mut list = world.list(&[shunt, json!({ "type": "slow" })]);
    list["cniVersion"] = "0.3.1".into();
    let mut asked = world.container_of("two", &list);
    let mut client = world.client();
    let go = world.lab.root().join("foreign/slow.go");
    std::fs::write(&go, "").unwrap();
    client.add(&asked).unwrap();
    let made = world.containers[1].namespace().command("ip", &["-o", "link", "show", "eth0"]).unwrap();
    std::fs::remove_file(&go).unwrap();
    // Another request, so that what is cached is no answer.
    asked.sandbox.args = [("IgnoreUnknown".to_owned(), "1".to_owned())].into();
    add_too_late(&world, &mut client, &asked);
    // Waits for the one that was late.
    client.add(&asked).unwrap();
    let link = world.containers[1].namespace().command("ip", &["-o", "link", "show", "eth0"]).unwrap();
    assert_eq!(link, made, "it is another one");
    client.delete(&asked).unwrap();
    world.assert_empty();
}
