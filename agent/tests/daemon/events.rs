//! Subscribers, and what they hear.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use shunt_agent_api::{BridgePort, Client, Event, EventKind, Pod, Reply, Request};

use crate::rig::{BRIDGE, PATIENCE, Rig, eventually};

/// Somebody who listens.
pub(crate) struct Subscriber {
    events: Receiver<Event>,
}

impl Subscriber {
    /// Subscribes. What happens after this is heard.
    pub(crate) fn new(rig: &Rig) -> Self {
        let mut client = Client::connect(&rig.socket()).unwrap();
        client.subscribe().unwrap();
        let (sender, events) = mpsc::channel();
        // It ends with the agent.
        std::thread::spawn(move || {
            while let Ok(Reply::Event(event)) = client.receive() {
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { events }
    }

    /// What it hears, until nothing happens any more.
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        std::iter::from_fn(|| self.events.recv_timeout(PATIENCE).ok())
    }

    /// The next event of this kind; others are passed over.
    pub(crate) fn hear(&self, kind: EventKind) -> Event {
        let begun = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let event =
                self.events.recv_timeout(left).unwrap_or_else(|_| panic!("no {kind:?} in {PATIENCE:?}"));
            if event.event == kind {
                return event;
            }
        }
    }
}

#[test]
fn a_subscriber_hears_what_becomes_of_attachments_their_links_and_bridges() {
    let mut rig = Rig::start("auto");
    let pod = Pod { namespace: "team".into(), name: "web".into(), uid: "u-1".into(), ..Pod::default() };
    let (first, second) = (BridgePort { pod: Some(pod), ..rig.container(2) }, rig.container(3));
    let subscriber = Subscriber::new(&rig);

    rig.attach(&first).unwrap();
    let heard = subscriber.hear(EventKind::Attach);
    assert_eq!(heard.key, Some(first.key.clone()));
    assert_eq!(heard.host_ifname.as_deref(), Some("veth2"));
    assert_eq!((heard.namespace.as_str(), heard.pod.as_str()), ("team", "web"));
    assert!(heard.time.starts_with("20") && heard.time.ends_with('Z'), "{}", heard.time);

    rig.containers[0].command("ip", &["link", "set", "eth0", "down"]).unwrap();
    assert_eq!(subscriber.hear(EventKind::LinkDown).key, Some(first.key.clone()));
    rig.containers[0].command("ip", &["link", "set", "eth0", "up"]).unwrap();
    assert_eq!(subscriber.hear(EventKind::LinkUp).key, Some(first.key.clone()));

    rig.detach(&first).unwrap();
    let heard = subscriber.hear(EventKind::Detach);
    assert_eq!((heard.key, heard.detail.as_str()), (Some(first.key.clone()), "asked to"));

    rig.attach(&second).unwrap();
    rig.ip(&["link", "del", BRIDGE]);
    let heard = subscriber.hear(EventKind::BridgeLost);
    assert_eq!((heard.key, heard.host_ifname.as_deref()), (None, Some(BRIDGE)));
    assert_eq!(subscriber.hear(EventKind::Detach).detail, "its bridge is gone");
}

#[test]
fn an_attach_that_is_refused_or_repeated_is_no_event() {
    let mut rig = Rig::start("auto");
    let (good, mut bad) = (rig.container(2), rig.container(3));
    bad.bridge.name = "br1".into();
    let subscriber = Subscriber::new(&rig);
    rig.attach(&bad).unwrap_err();
    rig.attach(&good).unwrap();
    rig.attach(&good).unwrap();
    rig.detach(&good).unwrap();
    let kinds: Vec<_> = subscriber.events().map(|event| event.event).take(2).collect();
    assert_eq!(kinds, [EventKind::Attach, EventKind::Detach]);
}

#[test]
fn an_end_that_comes_up_as_it_was_promised_to_has_never_been_down() {
    let mut rig = Rig::start("auto");
    let ports: Vec<_> = (2..10).map(|number| rig.container(number)).collect();
    let subscriber = Subscriber::new(&rig);
    for (port, container) in ports.iter().zip(&rig.containers) {
        // Told of as a plugin does it: before the end is up, and heard of when it long is.
        container.command("ip", &["link", "set", "eth0", "down"]).unwrap();
        rig.attach(port).unwrap();
        container.command("ip", &["link", "set", "eth0", "up"]).unwrap();
    }
    rig.containers[0].command("ip", &["link", "set", "eth0", "down"]).unwrap();
    let heard: Vec<_> =
        subscriber.events().map(|event| (event.event, event.key.unwrap())).take(ports.len() + 1).collect();
    let attached = ports.iter().map(|port| (EventKind::Attach, port.key.clone()));
    let expected: Vec<_> = attached.chain([(EventKind::LinkDown, ports[0].key.clone())]).collect();
    assert_eq!(heard, expected);
}

#[test]
fn subscribers_leave_connections_to_those_who_ask() {
    let rig = Rig::start("auto");
    let mut subscribers: Vec<_> = (0..64).map(|_| Client::connect(&rig.socket()).unwrap()).collect();
    for subscriber in &mut subscribers {
        subscriber.subscribe().unwrap();
    }
    let refusal = Client::connect(&rig.socket()).unwrap().subscribe().unwrap_err();
    assert!(refusal.to_string().contains("too many subscribers"), "{refusal}");
    assert!(rig.status().healthy);
    drop(subscribers.pop());
    eventually("there is a place again", || Client::connect(&rig.socket()).unwrap().subscribe().is_ok());
}

#[test]
fn a_subscriber_that_speaks_is_sent_away() {
    let rig = Rig::start("auto");
    let mut client = Client::connect(&rig.socket()).unwrap();
    client.subscribe().unwrap();
    client.send(Request::Status).unwrap();
    assert!(!matches!(client.receive(), Ok(Reply::Status(_))));
}

#[test]
fn the_verb_prints_a_json_object_a_line_and_ends_with_1_when_the_agent_ends() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    let mut verb = Command::new(env!("CARGO_BIN_EXE_shunt-agent"))
        .args(["events", "--socket"])
        .arg(rig.socket())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(verb.stdout.take().unwrap()).lines();
    let (printed, _lines) = std::thread::scope(|scope| {
        let first = scope.spawn(move || (lines.next(), lines));
        // Nobody knows when it listens.
        eventually("it prints", || {
            rig.attach(&port).unwrap();
            rig.detach(&port).unwrap();
            first.is_finished()
        });
        first.join().unwrap()
    });
    rig.kill();
    let code = verb.wait().unwrap().code();
    let line: serde_json::Value = serde_json::from_str(&printed.unwrap().unwrap()).unwrap();
    assert!(["attach", "detach"].contains(&line["event"].as_str().unwrap()), "{line}");
    assert_eq!(line["key"], serde_json::json!({ "network": "net", "container": "c2", "ifname": "eth0" }));
    assert!(line["time"].is_string());
    assert_eq!(code, Some(1));
}
