//! Calls that wait for others, and connections that say nothing.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_cni::proto::v1::VersionRequest;
use tokio::time::timeout;

use crate::client::{Asked, Client};
use crate::world::{World, eventually};

/// Places for calls of root that are done at a time.
pub(crate) const PLACES: usize = 32;

/// Holds an ADD up until it may go on.
pub(crate) const SLOW: &str = r#"
[ "$CNI_COMMAND" = ADD ] || exit 0
touch "$0.begun"
while [ ! -e "$0.go" ]; do sleep 0.01; done
sed 's/.*"prevResult"://; s/,"type":"slow".*//'
"#;

#[test]
fn calls_that_wait_for_another_one_keep_nobody_else_from_a_place() {
    let mut world = World::start();
    world.write_plugin("slow", SLOW);
    let list = world.list(&[world.shunt(), json!({ "type": "slow" })]);
    let slow = world.container_of("slow", &list);
    let quick: Vec<Asked> = (0..4).map(|number| world.container(&format!("c{number}"))).collect();
    let [begun, go] = ["begun", "go"].map(|what| world.lab.root().join(format!("foreign/slow.{what}")));
    let client = world.client();
    client.runtime.block_on(async {
        let add = |asked: &Asked| {
            let (mut stub, request) = (client.stub.clone(), asked.add());
            tokio::spawn(async move { stub.add(request).await })
        };
        let first = add(&slow);
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let more: Vec<_> = (0..2 * PLACES).map(|_| add(&slow)).collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        for asked in &quick {
            let other = timeout(Duration::from_secs(10), add(asked)).await;
            other.expect("the waiting ones have all places").unwrap().unwrap();
        }
        std::fs::write(&go, "").unwrap();
        let result = first.await.unwrap().unwrap().into_inner();
        for call in more {
            assert_eq!(call.await.unwrap().unwrap().into_inner(), result);
        }
    });
    let mut client = world.client();
    for asked in quick.iter().chain([&slow]) {
        client.delete(asked).unwrap();
    }
    world.assert_empty();
}

/// Reads until the other side ends; how long that took.
fn ended(mut stream: UnixStream, begun: Instant) -> Duration {
    stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    let _refused = stream.read_to_end(&mut Vec::new());
    begun.elapsed()
}

#[test]
fn a_connection_that_does_not_begin_is_ended() {
    let world = World::start();
    let begun = Instant::now();
    let silent = UnixStream::connect(world.socket()).unwrap();
    let mut hesitant = UnixStream::connect(world.socket()).unwrap();
    hesitant.write_all(b"PRI * HTTP/2.0\r\n").unwrap();
    for stream in [silent, hesitant] {
        let took = ended(stream, begun);
        assert!((Duration::from_secs(9)..Duration::from_secs(30)).contains(&took), "{took:?}");
    }
}

/// As many as are served at a time, and one more, which is sent away. Their places are free again once they are ended.
#[test]
fn connections_are_bounded() {
    let world = World::start();
    let many: Vec<_> = (0..512).map(|_| UnixStream::connect(world.socket()).unwrap()).collect();
    eventually("one too many is sent away", || {
        let one = UnixStream::connect(world.socket()).unwrap();
        one.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        matches!((&one).read(&mut [0; 1]), Ok(0))
    });
    drop(many);
    std::thread::sleep(Duration::from_millis(300));
    let mut client = Client::connect(&world.socket());
    client.runtime.block_on(client.stub.version(VersionRequest {})).unwrap();
}
