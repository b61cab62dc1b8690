//! Clients that send slowly, and read slowly.

use std::fs;
use std::path::PathBuf;

use http_body_util::Channel as Pending;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2 as client;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service as _;

use super::*;
use crate::client::Channel;
use crate::failure::{Failure, codes};
use crate::proto::v1::network::Source;
use crate::proto::v1::{
    Network, RegisterNetworkRequest, StatusRequest, UnregisterNetworkRequest, VersionRequest,
};

const SOON: Duration = Duration::from_secs(8);

async fn server() -> (TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let within = |name: &str| folder.path().join(name);
    let settings = Settings {
        agent_socket: within("agent.sock"),
        cni_path: Vec::new(),
        cache_dir: within("cache"),
        networks_dir: within("networks"),
        netns_dirs: vec![PathBuf::from("/run/netns")],
        program_limit: SOON,
    };
    let server = Server::new(settings, true).await.unwrap();
    (folder, server)
}

/// A connection of a user; 0 is root.
async fn connect(server: &mut Server, user: u32) -> Channel {
    let (ours, theirs) = UnixStream::pair().unwrap();
    server.admit(theirs, Caller { user, process: None, may_change: user == 0 });
    Channel::over(ours).await.unwrap()
}

async fn version(channel: Channel) -> Result<(), Status> {
    timeout(SOON, channel.stub().version(VersionRequest {})).await.expect("no answer").map(drop)
}

/// A list whose STATUS needs no plugin.
fn list_of(bytes: usize) -> Network {
    let list = json!({
        "cniVersion": "0.4.0", "name": "pods", "plugins": [{ "type": "shunt", "more": "x".repeat(bytes) }]
    });
    Network { source: Some(Source::ConfigList(list.to_string().into_bytes())) }
}

/// Begins calls whose message never comes.
fn begin(channel: &mut Channel, number: usize) -> Vec<Kept> {
    let mut kept = Vec::new();
    for _ in 0..number {
        let (sender, body) = Pending::<Bytes, std::convert::Infallible>::new(1);
        let request = Request::post("http://localhost/shunt.cni.v1.CniService/Version")
            .header("content-type", "application/grpc")
            .body(Body::new(body));
        let answer = tokio::spawn(channel.call(request.unwrap()));
        kept.push(Kept { _sender: sender, answer: answer.abort_handle() });
    }
    kept
}

struct Kept {
    _sender: http_body_util::channel::Sender<Bytes, std::convert::Infallible>,
    answer: tokio::task::AbortHandle,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

#[tokio::test]
async fn any_number_of_long_messages_on_one_connection_is_answered() {
    let (_folder, mut server) = server().await;
    let stub = connect(&mut server, 0).await.stub();
    let calls: Vec<_> = [100_000; 60]
        .into_iter()
        .chain([1_000_000; 80])
        .map(|bytes| {
            let mut stub = stub.clone();
            let request = StatusRequest { network: Some(list_of(bytes)) };
            tokio::spawn(async move { stub.status(request).await })
        })
        .collect();
    for call in calls {
        timeout(2 * SOON, call).await.expect("no answer").unwrap().unwrap();
    }
}

#[tokio::test]
async fn calls_whose_message_does_not_come_keep_no_other_client_waiting() {
    let (_folder, mut server) = server().await;
    for user in [0, 1000] {
        let mut silent = connect(&mut server, user).await;
        let _kept = begin(&mut silent, 60);
        sleep(Duration::from_millis(300)).await;
        version(connect(&mut server, user + user % 999).await).await.unwrap();
    }
}

#[tokio::test]
async fn no_user_has_all_calls_and_connections_of_the_group() {
    let (_folder, mut server) = server().await;
    let mut greedy = Vec::new();
    for _ in 0..OF_MEMBERS.connections[0] {
        let (ours, theirs) = UnixStream::pair().unwrap();
        server.admit(theirs, Caller { user: 1000, process: None, may_change: false });
        greedy.push(Channel::over(ours).await);
    }
    let mut greedy: Vec<_> = greedy.into_iter().flatten().collect();
    let _kept: Vec<_> = greedy.iter_mut().flat_map(|channel| begin(channel, 60)).collect();
    sleep(Duration::from_millis(300)).await;
    version(connect(&mut server, 1001).await).await.unwrap();
    // The greedy one is told so.
    let refused = version(greedy[0].clone()).await.unwrap_err();
    assert_eq!(Failure::of_status(&refused).unwrap().unwrap().code, codes::TRY_AGAIN);
}

#[tokio::test]
async fn answers_that_are_not_read_are_as_few_as_calls() {
    let (folder, mut server) = server().await;
    let results = folder.path().join("cache/results");
    fs::create_dir_all(&results).unwrap();
    for number in 0..64 {
        let cached = json!({
            "kind": "cniCacheV1", "containerId": format!("c{number}"), "config": "", "ifName": "eth0",
            "networkName": "pods", "result": { "dns": { "search": ["x".repeat(4_000)] } }
        });
        fs::write(results.join(format!("pods-c{number}-eth0")), cached.to_string()).unwrap();
    }
    let mut unread = Vec::new();
    let [mut answered, mut refused] = [0; 2];
    // As h2 does not know a window of 0, one of a byte.
    let (ours, theirs) = UnixStream::pair().unwrap();
    server.admit(theirs, Caller { user: 1000, process: None, may_change: false });
    let mut slow = client::Builder::new(TokioExecutor::new());
    slow.initial_stream_window_size(1);
    let (mut channel, connection) = slow.handshake(TokioIo::new(ours)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..2 * OF_MEMBERS.calls[1] {
        let message = [0; 5];
        let request = Request::post("http://localhost/shunt.cni.v1.CniService/ListAttachments")
            .header("content-type", "application/grpc")
            .body(Body::new(http_body_util::Full::new(Bytes::from_owner(message))));
        let response =
            timeout(SOON, channel.send_request(request.unwrap())).await.expect("no answer").unwrap();
        // What has failed says so at once, in the head.
        *(if response.headers().contains_key("grpc-status") { &mut refused } else { &mut answered }) += 1;
        unread.push(response);
    }
    assert_eq!([answered, refused], [OF_MEMBERS.calls[1]; 2]);
    version(connect(&mut server, 1001).await).await.unwrap();
    drop(unread);
    sleep(Duration::from_millis(300)).await;
    version(connect(&mut server, 1000).await).await.unwrap();
}

#[tokio::test]
async fn a_name_that_is_no_network_s_is_refused_before_anything_waits_for_it() {
    let (_folder, mut server) = server().await;
    let mut stub = connect(&mut server, 0).await.stub();
    let code = |refused: Status| Failure::of_status(&refused).unwrap().unwrap().code;
    for name in ["a/b".to_owned(), "n".repeat(100_000)] {
        let refused = stub.unregister_network(UnregisterNetworkRequest { name }).await.unwrap_err();
        assert_eq!(code(refused), codes::INVALID_CONFIG);
    }
    let list = |length: usize| {
        let list = json!({ "name": "n".repeat(length), "plugins": [{ "type": "shunt" }] });
        RegisterNetworkRequest { config_list: list.to_string().into_bytes() }
    };
    assert_eq!(code(stub.register_network(list(201)).await.unwrap_err()), codes::INVALID_CONFIG);
    let name = stub.register_network(list(200)).await.unwrap().into_inner().name;
    let named = Network { source: Some(Source::Name(name)) };
    stub.status(StatusRequest { network: Some(named) }).await.unwrap();
}
