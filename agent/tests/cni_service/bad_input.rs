//! Clients that know no manners.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;
use shunt_cni::proto::v1::{AddRequest, Network, RegisterNetworkRequest, VersionRequest};
use tonic::Code;

use crate::client::{Client, OfCni as _, given, named};
use crate::world::World;

#[test]
fn requests_that_make_no_sense_are_refused_with_their_code() {
    let mut world = World::start();
    let good = world.container("one");
    let mut client = world.client();
    let with = |change: &dyn Fn(&mut AddRequest)| {
        let mut request = good.add();
        change(&mut request);
        request
    };
    for (request, code, mentions) in [
        (AddRequest::default(), 7, "no network"),
        (with(&|request| request.network = Some(Network::default())), 7, "no network"),
        (with(&|request| request.network = Some(given(&json!([])))), 6, "configuration list"),
        (with(&|request| request.network = Some(given(&json!({ "name": "x" })))), 7, "plugins"),
        (with(&|request| request.attachment = None), 4, "container_id"),
        (with(&|request| request.attachment.as_mut().unwrap().ifname = "a/b".into()), 4, "a/b"),
        (with(&|request| request.attachment.as_mut().unwrap().container_id = "../x".into()), 4, "../x"),
        (with(&|request| request.attachment.as_mut().unwrap().container_id = "c".repeat(201)), 4, "200"),
        (with(&|request| request.network = Some(named(&"n".repeat(201)))), 7, "200"),
        (with(&|request| request.sandbox = None), 4, "namespace"),
        (
            with(&|request| request.sandbox.as_mut().unwrap().netns = "/proc/self/ns/net".into()),
            8,
            "netns_dirs",
        ),
        (with(&|request| request.sandbox.as_mut().unwrap().netns += ".gone"), 8, "gone"),
        (
            with(&|request| request.sandbox.as_mut().unwrap().capability_args = b"[".to_vec()),
            6,
            "capability_args",
        ),
    ] {
        let refused = client.runtime.block_on(client.stub.add(request.clone())).unwrap_err().of_cni();
        assert!(refused.code == code && refused.msg.contains(mentions), "{request:?}: {refused:?}");
    }
    // Of an id that no attachment can have there is nothing to delete.
    for length in [201, 250, 300] {
        let mut asked = good.clone();
        asked.attachment.container_id = "c".repeat(length);
        client.delete(&asked).unwrap();
    }
    let own = world.node.namespace().path().to_str().unwrap().to_owned();
    let refused = client
        .runtime
        .block_on(client.stub.add(with(&|request| request.sandbox.as_mut().unwrap().netns = own.clone())));
    assert!([4, 8].contains(&refused.unwrap_err().of_cni().code));
    world.assert_empty();
}

#[test]
fn a_message_that_is_too_long_is_refused_and_others_are_served() {
    let world = World::start();
    let mut client = world.client();
    let register = RegisterNetworkRequest { config_list: vec![b' '; 2 << 20] };
    let refused = client.runtime.block_on(client.stub.register_network(register)).unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    client.runtime.block_on(client.stub.version(VersionRequest {})).unwrap();
}

#[test]
fn a_client_that_speaks_something_else_or_nothing_keeps_nobody_waiting() {
    let world = World::start();
    let silent: Vec<_> = (0..40).map(|_| UnixStream::connect(world.socket()).unwrap()).collect();
    let mut other = UnixStream::connect(world.socket()).unwrap();
    other.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut said = Vec::new();
    let _ended = other.read_to_end(&mut said);
    let mut client = Client::connect(&world.socket());
    client.runtime.block_on(client.stub.version(VersionRequest {})).unwrap();
    drop(silent);
}
