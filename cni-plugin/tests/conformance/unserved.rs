//! `viaAgent` where the agent's service is not there, says nothing, does not know the call, or breaks off: never both ways, never for ever.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::runtime::Runtime;

/// What the stand-in does with a call.
#[derive(Clone, Copy)]
enum Manner {
    /// Answers with this status of gRPC.
    Says(&'static str),
    /// Ends the connection.
    Breaks,
}

/// A service that is none, and how many calls it has heard of. Its thread ends with the process.
fn stand_in(runtime: &Runtime, manner: Manner) -> (PathBuf, Arc<AtomicUsize>) {
    let socket = runtime.lab.root().join("stand-in.sock");
    let _earlier = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&heard);
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        for stream in listener.incoming() {
            runtime.block_on(converse(stream.unwrap(), manner, &calls));
        }
    });
    (socket, heard)
}

async fn converse(stream: std::os::unix::net::UnixStream, manner: Manner, calls: &AtomicUsize) {
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::UnixStream::from_std(stream).unwrap();
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        calls.fetch_add(1, Ordering::Relaxed);
        let Manner::Says(status) = manner else { return };
        let mut answer = http::Response::new(());
        answer.headers_mut().insert("grpc-status", status.parse().unwrap());
        answer.headers_mut().insert("grpc-message", "a%20reason".parse().unwrap());
        respond.send_response(answer, true).unwrap();
    }
}

fn via(runtime: &Runtime, socket: &Path) -> Value {
    let mut network = runtime.network("n1");
    network["viaAgent"] = json!(socket);
    network
}

/// ADD and STATUS fail with these codes and words, DEL succeeds, and nothing is left.
#[track_caller]
fn refuses(runtime: &Runtime, socket: &Path, code: u64, words: &[&str]) {
    refuses_all_but_del(runtime, socket, code, words);
    runtime.call("DEL", "c1", &via(runtime, socket)).ok();
}

#[track_caller]
fn refuses_all_but_del(runtime: &Runtime, socket: &Path, code: u64, words: &[&str]) {
    let container = runtime.container("c1");
    let (before, network) = (runtime.inventory(), via(runtime, socket));
    let (found, text) = runtime.call("ADD", "c1", &network).error();
    assert!(found == code && words.iter().all(|word| text.contains(word)), "{found} {text}");
    let (status, text) = runtime.call("STATUS", "c1", &network).error();
    assert_eq!(status, 50, "{text}");
    assert_eq!(runtime.call("GC", "c1", &with_list(&network)).error().0, code);
    runtime.call("VALIDATE", "c1", &network).ok();
    runtime.assert_nothing_new(&before);
    assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
}

fn with_list(network: &Value) -> Value {
    let mut network = network.clone();
    network["cni.dev/valid-attachments"] = json!([]);
    network
}

const CURE: &str = "take `viaAgent` out";

#[test]
fn without_a_service_nothing_is_begun_and_del_is_done_by_the_plugin() {
    let runtime = Runtime::plain();
    let nowhere = runtime.lab.root().join("nowhere.sock");
    refuses(&runtime, &nowhere, 11, &["cannot be reached", "nowhere.sock", "No such file", CURE]);
    let left = runtime.lab.root().join("left.sock");
    drop(UnixListener::bind(&left).unwrap());
    refuses(&runtime, &left, 11, &["cannot be reached", "refused", CURE]);
}

/// What is attached is taken down without a service, too.
#[test]
fn del_takes_an_attachment_down_where_the_service_has_gone() {
    let runtime = Runtime::served();
    let _container = runtime.container("c1");
    let network = runtime.network("n1");
    runtime.call("INIT", "c1", &network).ok();
    let before = runtime.inventory();
    runtime.call("ADD", "c1", &network).ok();
    let gone = via(&runtime, &runtime.lab.root().join("gone.sock"));
    runtime.call("DEL", "c1", &gone).ok();
    runtime.node.command("ip", &["address", "flush", "dev", "br0"]).unwrap();
    runtime.assert_nothing_new(&before);
}

#[test]
fn a_service_that_says_nothing_is_waited_for_until_a_deadline() {
    let runtime = Runtime::plain();
    let (_container, before) = (runtime.container("c1"), runtime.inventory());
    let socket = runtime.lab.root().join("silent.sock");
    let _silent = UnixListener::bind(&socket).unwrap();
    let network = via(&runtime, &socket);
    let begun = Instant::now();
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 11 && text.contains("does not answer") && text.contains(CURE), "{code} {text}");
    runtime.call("DEL", "c1", &network).ok();
    let took = begun.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(30)).contains(&took), "{took:?}");
    runtime.assert_nothing_new(&before);
}

#[test]
fn an_agent_whose_service_is_older_or_refuses_has_begun_nothing() {
    let runtime = Runtime::plain();
    let (older, heard) = stand_in(&runtime, Manner::Says("12"));
    refuses(&runtime, &older, 11, &["older", CURE]);
    assert_eq!(heard.load(Ordering::Relaxed), 4, "ADD, STATUS, GC and DEL have asked");
    let (forbidden, _) = stand_in(&runtime, Manner::Says("7"));
    refuses(&runtime, &forbidden, 5, &["refuses", "a reason"]);
}

/// It may be at the same attachment's ADD: what a DEL beside it took down would be made after it, and stay.
#[test]
fn a_busy_service_s_del_is_done_by_nobody_else() {
    let runtime = Runtime::plain();
    let (busy, heard) = stand_in(&runtime, Manner::Says("14"));
    refuses_all_but_del(&runtime, &busy, 11, &["refuses", "a reason"]);
    let _container = runtime.container("c2");
    let before = runtime.inventory();
    let network = runtime.network("n1");
    runtime.call("ADD", "c2", &network).ok();
    let (code, text) = runtime.call("DEL", "c2", &via(&runtime, &busy)).error();
    assert!(code == 11 && text.contains("a reason"), "{code} {text}");
    assert_eq!(heard.load(Ordering::Relaxed), 4, "ADD, STATUS, GC and DEL have asked");
    assert_eq!(runtime.agent.with(|books| books.ports.len()), 1, "it is still attached");
    runtime.call("DEL", "c2", &network).ok();
    runtime.node.command("ip", &["link", "del", "br0"]).unwrap();
    runtime.assert_nothing_new(&before);
}

/// A server that refuses by the head alone ends the stream (RST_STREAM with NO_ERROR) before it has the request, which is no fault of the
/// answer: h2 takes it so from 0.4.16 on.
#[test]
fn a_refusal_is_read_before_all_of_the_request_is_sent() {
    let runtime = Runtime::plain();
    let _container = runtime.container("c1");
    let (busy, _) = stand_in(&runtime, Manner::Says("14"));
    let mut network = via(&runtime, &busy);
    network["padding"] = json!("x".repeat(900 << 10));
    for _ in 0..5 {
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(code == 11 && text.contains("a reason"), "{code} {text}");
    }
}

#[test]
fn a_service_that_breaks_off_is_not_stood_in_for() {
    let runtime = Runtime::plain();
    let (_container, before) = (runtime.container("c1"), runtime.inventory());
    for manner in [Manner::Breaks, Manner::Says("13"), Manner::Says("4")] {
        let (socket, _) = stand_in(&runtime, manner);
        for verb in ["ADD", "DEL"] {
            let (code, text) = runtime.call(verb, "c1", &via(&runtime, &socket)).error();
            assert!(code == 5 && text.contains("until a DEL"), "{verb}: {code} {text}");
        }
    }
    runtime.assert_nothing_new(&before);
    assert_eq!(runtime.agent.with(|books| books.verbs.clone()), Vec::<String>::new());
}

#[test]
fn a_namespace_that_the_agent_s_file_does_not_name_is_refused_and_its_del_is_done() {
    let runtime = Runtime::served();
    let network = runtime.network("n1");
    let mut environment = runtime.environment("ADD", "c1");
    // It is not there either, which is the last thing that is looked at.
    environment[2].1 = "/tmp/of-nobody.netns".to_owned();
    let (code, text) = runtime.call_with(&environment, network.to_string().as_bytes()).error();
    assert!(code == 8 && text.contains("netns_dirs"), "{code} {text}");
    environment[0].1 = "DEL".to_owned();
    runtime.call_with(&environment, network.to_string().as_bytes()).ok();
}

#[test]
fn what_is_longer_than_a_message_is_refused_by_name() {
    let runtime = Runtime::served();
    let mut network = runtime.network("n1");
    network["padding"] = json!("x".repeat(1 << 20));
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(
        code == 7 && text.contains(CURE.trim_end_matches(" out")) && text.contains("bytes"),
        "{code} {text}"
    );
    network["padding"] = json!("x".repeat(900 << 10));
    runtime.call("STATUS", "c1", &network).ok();
}

#[test]
fn a_key_that_is_wrong_is_refused_and_nobody_is_asked() {
    let runtime = Runtime::plain();
    let mut network = runtime.network("n1");
    for wrong in [json!(5), json!("cni.sock"), json!("")] {
        network["viaAgent"] = wrong;
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(code == 7 && text.contains("viaAgent"), "{code} {text}");
        runtime.call("DEL", "c1", &network).ok();
    }
    network["viaAgent"] = json!(false);
    runtime.call("STATUS", "c1", &network).ok();
}
