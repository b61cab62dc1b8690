//! How long a call waits for an agent and an IPAM that do not answer.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket};
use serde_json::{Value, json};

use crate::runtime::Runtime;

/// An agent that is stopped: nobody takes connections. Those that may wait for that do already, where its queue is `full`.
struct Stopped {
    path: PathBuf,
    _sockets: Vec<OwnedFd>,
}

impl Stopped {
    fn new(runtime: &Runtime, name: &str, full: bool) -> Self {
        let path = runtime.lab.root().join(name);
        let address = UnixAddr::new(&path).unwrap();
        let open = |flags| socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
        let listener = open(SockFlag::SOCK_CLOEXEC);
        bind(listener.as_raw_fd(), &address).unwrap();
        listen(&listener, Backlog::new(if full { 1 } else { 64 }).unwrap()).unwrap();
        let mut sockets = vec![listener];
        let client = || {
            let client = open(SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK);
            match connect(client.as_raw_fd(), &address) {
                Err(Errno::EAGAIN) => None,
                connected => connected.map(|()| Some(client)).unwrap(),
            }
        };
        if full {
            sockets.extend(std::iter::from_fn(client));
        }
        Self { path, _sockets: sockets }
    }
}

#[test]
fn a_stopped_agent_is_waited_for_fifteen_seconds_in_all() {
    let runtime = Runtime::new();
    let kinds = [("silent", false), ("full", true)];
    let stopped = kinds.map(|(name, full)| Stopped::new(&runtime, &format!("{name}.sock"), full));
    let ids: Vec<String> =
        kinds.iter().flat_map(|(name, _)| ["a", "d"].map(|verb| format!("{verb}{name}"))).collect();
    let _containers: Vec<_> = ids.iter().map(|id| runtime.container(id)).collect();
    let network = runtime.network("n1");
    let made: Vec<Value> =
        kinds.iter().map(|(name, _)| runtime.call("ADD", &format!("d{name}"), &network).ok()).collect();
    let (runtime, network) = (&runtime, &network);
    std::thread::scope(|scope| {
        for ((name, _), (agent, made)) in kinds.iter().zip(stopped.iter().zip(&made)) {
            let mut asking = network.clone();
            asking["agentSocket"] = json!(agent.path);
            let mut checking = asking.clone();
            checking["prevResult"] = made.clone();
            let mut collecting = asking.clone();
            collecting["name"] = json!("n2");
            collecting["cni.dev/valid-attachments"] = json!([]);
            let calls = [
                ("ADD", "a", asking.clone(), 11),
                ("CHECK", "d", checking, 11),
                ("STATUS", "d", asking.clone(), 50),
                ("GC", "d", collecting, 0),
            ];
            for (verb, id, config, code) in calls {
                scope.spawn(move || {
                    let begun = Instant::now();
                    let outcome = runtime.call(verb, &format!("{id}{name}"), &config);
                    let took = begun.elapsed();
                    assert_eq!(
                        outcome.printed["code"].as_u64().unwrap_or(0),
                        code,
                        "{verb}: {}",
                        outcome.printed
                    );
                    assert!(
                        took >= Duration::from_secs(14) && took < Duration::from_secs(20),
                        "{verb} {name}: {took:?}"
                    );
                });
            }
        }
    });
    // A DEL beside them would take what is checked.
    std::thread::scope(|scope| {
        for ((name, _), agent) in kinds.iter().zip(&stopped) {
            scope.spawn(move || {
                let mut deleting = network.clone();
                deleting["agentSocket"] = json!(agent.path);
                let begun = Instant::now();
                runtime.call("DEL", &format!("d{name}"), &deleting).ok();
                assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
            });
        }
    });
    assert!(!runtime.inventory().has("link veth") && !runtime.inventory().has("lease n1/10."));
}

#[test]
fn an_ipam_that_speaks_before_it_listens_is_heard() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    // More than a pipe holds, both ways.
    let script = r#"[ $CNI_COMMAND = ADD ] || exit 0
        yes '' | head -c 300000
        echo '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}'
        [ $(wc -c) -gt 300000 ]"#;
    let mut network = runtime.network_of_ipam(script);
    network["padding"] = json!("x".repeat(300_000));
    let begun = Instant::now();
    assert_eq!(runtime.call("ADD", "c1", &network).ok()["ips"][0]["address"], "10.1.2.3/24");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    runtime.call("DEL", "c1", &network).ok();
}

#[test]
fn an_ipam_that_does_not_end_is_ended_where_its_time_is_limited() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    let mut network = runtime.network_of_ipam("[ $CNI_COMMAND = ADD ] || exit 0; exec sleep 30");
    network["ipamTimeout"] = json!("500ms");
    let begun = Instant::now();
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 11 && text.contains("fake-ipam") && text.contains("ipamTimeout"), "{code} {text}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    runtime.assert_nothing_new(&before);
    for wrong in [json!("soon"), json!(5), json!("0s")] {
        network["ipamTimeout"] = wrong.clone();
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(code == 7 && text.contains("ipamTimeout"), "{wrong}: {code} {text}");
    }
}
