//! Clients that break the rules, and many at a time.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_agent_api::{
    AgentError, AttachmentKey, BridgePort, Client, Envelope, ErrorKind, Interface, Reply, Request, deadline,
    frame,
};
use shunt_lab::uninterrupted;

use crate::rig::Rig;

pub(crate) fn connect(rig: &Rig) -> UnixStream {
    let stream = UnixStream::connect(rig.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

pub(crate) fn hear(stream: &mut UnixStream) -> Reply {
    hear_envelope(stream).body
}

pub(crate) fn hear_envelope(stream: &mut UnixStream) -> Envelope<Reply> {
    let mut length = [0; frame::LENGTH_BYTES];
    stream.read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).unwrap();
    frame::decode(&body).unwrap()
}

pub(crate) fn kind(reply: Reply) -> ErrorKind {
    match reply {
        Reply::Error(AgentError { kind, .. }) => kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_socket_is_for_root_only() {
    let rig = Rig::start("auto");
    let mode = std::fs::metadata(rig.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_request_that_is_too_long_is_refused_before_it_arrives() {
    let rig = Rig::start("auto");
    let mut stream = connect(&rig);
    stream.write_all(&(frame::MAX_REQUEST as u32 + 1).to_be_bytes()).unwrap();
    assert_eq!(kind(hear(&mut stream)), ErrorKind::Malformed);
    assert_eq!(uninterrupted(|| stream.read(&mut [0; 1])).unwrap(), 0);
}

#[test]
fn another_version_and_what_is_no_request_are_told_apart_and_the_connection_goes_on() {
    let rig = Rig::start("auto");
    let mut stream = connect(&rig);
    let cases: [(&[u8], ErrorKind); 7] = [
        (br#"{"version":99,"body":{"verb":"something-new"}}"#, ErrorKind::Version),
        (br#"{"version":1,"body":{"verb":"status"}}"#, ErrorKind::Version),
        (br#"{"version":2,"body":{"verb":"something-new"}}"#, ErrorKind::Malformed),
        (br#"{"version":3,"body":{"verb":"announce"}}"#, ErrorKind::Malformed),
        (br#"{"version":3,"body":{"verb":"attach"}}"#, ErrorKind::Malformed),
        (br#"{"version":3,"#, ErrorKind::Malformed),
        (b"", ErrorKind::Malformed),
    ];
    for (body, expected) in cases {
        stream.write_all(&framed(body)).unwrap();
        assert_eq!(kind(hear(&mut stream)), expected, "{}", String::from_utf8_lossy(body));
    }
    stream.write_all(&framed(br#"{"version":3,"body":{"verb":"status"}}"#)).unwrap();
    assert!(matches!(hear(&mut stream), Reply::Status(_)));
}

#[test]
fn a_request_that_comes_after_its_deadline_is_not_begun() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    let mut stream = connect(&rig);
    let ask = |stream: &mut UnixStream, deadline: u64| {
        let attach = Request::Attach { port: port.clone(), set_up: false };
        let envelope = Envelope { deadline: Some(deadline), ..Envelope::new(attach) };
        stream.write_all(&frame::encode(&envelope).unwrap()).unwrap();
        hear(stream)
    };
    assert_eq!(kind(ask(&mut stream, deadline::now() - 1)), ErrorKind::Unavailable);
    assert_eq!(rig.status().attachments, 0);
    assert!(matches!(ask(&mut stream, deadline::now() + 60_000), Reply::Attached(_)));
}

#[test]
fn names_of_two_hundred_characters_survive_a_restart_and_a_long_list_is_read() {
    let mut rig = Rig::start("auto");
    let mut port = rig.container(2);
    port.key.network = "n".repeat(200);
    port.key.container = "c".repeat(200);
    rig.attach(&port).unwrap();
    rig.kill();
    rig.run("auto");
    rig.check(&port).unwrap();
    let other = |number| AttachmentKey { container: format!("{number:0200}"), ..port.key.clone() };
    let valid = (0..20_000).map(other).chain([port.key.clone()]).collect();
    let network = port.key.network.clone();
    assert!(
        matches!(rig.ask(Request::Collect { network, valid }), Ok(Reply::Collected(collected)) if collected.removed.is_empty())
    );
    rig.check(&port).unwrap();
}

#[test]
fn half_open_clients_keep_nobody_waiting_and_are_sent_away() {
    let rig = Rig::start("auto");
    let mut half: Vec<_> = (0..50).map(|_| connect(&rig)).collect();
    for stream in &mut half {
        stream.write_all(&[0, 0, 0, 50, b'{']).unwrap();
    }
    let begun = Instant::now();
    assert!(rig.status().healthy);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(uninterrupted(|| half[0].read(&mut [0; 1])).unwrap(), 0, "it is sent away");
}

#[test]
fn two_hundred_clients_are_served_at_a_time() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    let rig = &rig;
    std::thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| {
                let mut client = Client::connect(&rig.socket()).unwrap();
                for _ in 0..3 {
                    let reply = client.ask(Request::Ports).unwrap();
                    assert!(matches!(reply, Reply::Ports(ports) if ports.len() == 1));
                }
            });
        }
    });
}

/// A client of the previous release: it speaks version 2, says a port in two parts, and expects answers in its own version.
fn ask_as_before(stream: &mut UnixStream, body: &serde_json::Value, has_reply: bool) -> Option<Reply> {
    let envelope = json!({ "version": 2, "is_last": !has_reply, "body": body });
    stream.write_all(&framed(envelope.to_string().as_bytes())).unwrap();
    has_reply.then(|| {
        let reply = hear_envelope(stream);
        assert_eq!(reply.version, 2);
        reply.body
    })
}

#[test]
fn a_plugin_of_the_previous_release_is_served() {
    let mut rig = Rig::start("auto");
    let (whole, parts) = (rig.container(2), rig.container(3));
    rig.ip(&["link", "set", &whole.host.name, "down"]);
    let mut stream = connect(&rig);
    let peer = json!({ "index": 2, "namespace": 0 });
    let attach = json!({ "verb": "attach", "about": { "port": whole, "is_new": true, "set_up": peer } });
    let attached = ask_as_before(&mut stream, &attach, true);
    assert!(matches!(attached, Some(Reply::Attached(_))), "{attached:?}");
    rig.check(&whole).unwrap();
    assert!(rig.ip(&["link", "show", "up", "dev", &whole.host.name]).contains(&whole.host.name));

    let place = json!({ "bridge": parts.bridge, "host": parts.host, "mtu": parts.mtu });
    let rest = json!({ "verb": "attach-announced", "about": { "place": place } });
    let refused = |stream: &mut UnixStream| kind(ask_as_before(stream, &rest, true).unwrap());
    assert_eq!(refused(&mut stream), ErrorKind::Malformed, "nothing was announced");
    let unplaced =
        BridgePort { bridge: Interface::default(), host: Interface::default(), mtu: 0, ..parts.clone() };
    let announce = json!({ "verb": "announce", "about": { "port": unplaced } });
    ask_as_before(&mut stream, &announce, false);
    let attached = ask_as_before(&mut stream, &rest, true);
    assert!(matches!(attached, Some(Reply::Attached(_))), "{attached:?}");
    rig.check(&parts).unwrap();
    assert_eq!(refused(&mut stream), ErrorKind::Malformed, "it is attached");
    // The first part alone attaches nothing.
    ask_as_before(&mut stream, &announce, false);
    let status = ask_as_before(&mut stream, &json!({ "verb": "status" }), true);
    assert!(matches!(status, Some(Reply::Status(status)) if status.attachments == 2));
    let detach = json!({ "verb": "detach", "about": { "key": parts.key } });
    assert!(matches!(ask_as_before(&mut stream, &detach, true), Some(Reply::Detached(_))));
}
