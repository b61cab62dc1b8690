//! Clients that break the rules, and many at a time.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use shunt_agent_api::{
    AgentError, AttachmentKey, BridgePort, Client, ClientError, Envelope, ErrorKind, Place, Reply, Request,
    frame,
};
use shunt_lab::uninterrupted;

use crate::rig::Rig;

fn connect(rig: &Rig) -> UnixStream {
    let stream = UnixStream::connect(rig.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

fn hear(stream: &mut UnixStream) -> Reply {
    let mut length = [0; frame::LENGTH_BYTES];
    stream.read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).unwrap();
    frame::decode::<Envelope<Reply>>(&body).unwrap().body
}

fn kind(reply: Reply) -> ErrorKind {
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
    let cases: [(&[u8], ErrorKind); 5] = [
        (br#"{"version":99,"body":{"verb":"something-new"}}"#, ErrorKind::Version),
        (br#"{"version":2,"body":{"verb":"something-new"}}"#, ErrorKind::Malformed),
        (br#"{"version":2,"body":{"verb":"attach"}}"#, ErrorKind::Malformed),
        (br#"{"version":2,"#, ErrorKind::Malformed),
        (b"", ErrorKind::Malformed),
    ];
    for (body, expected) in cases {
        stream.write_all(&framed(body)).unwrap();
        assert_eq!(kind(hear(&mut stream)), expected, "{}", String::from_utf8_lossy(body));
    }
    stream.write_all(&framed(br#"{"version":2,"body":{"verb":"status"}}"#)).unwrap();
    assert!(matches!(hear(&mut stream), Reply::Status(_)));
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

#[test]
fn what_was_announced_is_attached_where_its_place_is_said_and_once() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    let place = Place { bridge: port.bridge.clone(), host: port.host.clone(), mtu: port.mtu };
    let mut client = Client::connect(&rig.socket()).unwrap();
    let rest = Request::AttachAnnounced { place, is_new: false, set_up: None };
    let refused = |client: &mut Client| {
        matches!(
            client.ask(rest.clone()),
            Err(ClientError::Refused(AgentError { kind: ErrorKind::Malformed, .. })),
        )
    };
    assert!(refused(&mut client), "nothing was announced");
    let unplaced = port.clone().at(Place::default());
    client.send(Request::Announce { port: unplaced }).unwrap();
    assert!(matches!(client.ask(rest.clone()), Ok(Reply::Attached(_))));
    rig.check(&port).unwrap();
    assert!(refused(&mut client), "it is attached");
    // The other half alone is nothing, and what is announced last counts.
    client.send(Request::Announce { port: port.clone() }).unwrap();
    let other = AttachmentKey { container: "another".to_owned(), ..port.key.clone() };
    client.send(Request::Announce { port: BridgePort { key: other, ..port.clone() } }).unwrap();
    assert!(matches!(client.ask(Request::Status), Ok(Reply::Status(status)) if status.attachments == 1));
    let taken = client.ask(rest.clone());
    assert!(
        matches!(taken, Err(ClientError::Refused(AgentError { kind: ErrorKind::Exists, .. }))),
        "{taken:?}"
    );
}

#[test]
fn behind_the_reply_to_a_last_request_the_agent_ends_the_connection() {
    let rig = Rig::start("auto");
    let mut client = Client::connect(&rig.socket()).unwrap();
    for _ in 0..3 {
        assert!(matches!(client.ask(Request::Status), Ok(Reply::Status(_))));
    }
    client.send_last(Request::Status).unwrap();
    assert!(matches!(client.receive(), Ok(Reply::Status(_))));
    assert!(matches!(client.receive(), Err(ClientError::Silent { .. })), "there is nothing more");
}
