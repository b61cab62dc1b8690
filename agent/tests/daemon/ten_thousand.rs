//! Ten thousand attachments on ten bridges: what a start, another attachment, a look at all of them and doing nothing cost.

use std::fmt::Write as _;
use std::fs;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use shunt_agent_api::{AttachmentKey, BridgePort, Interface, Request};
use shunt_lab::Threads;

use crate::metrics::{self, ADDRESS};
use crate::rig::Rig;

const BRIDGES: usize = 10;

/// A bridge has room for 1,023 ports.
const PER_BRIDGE: usize = 1000;

/// How long the agent is watched doing nothing.
const IDLE: Duration = Duration::from_secs(20);

/// Attachments of one measurement.
const ROUNDS: usize = 50;

/// A debug build may take so many times the time and the memory.
const FACTOR: f64 = if cfg!(debug_assertions) { 6.0 } else { 1.0 };

/// What is aimed at, of a release build.
const START: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(500);
/// What the agent's own part of a scrape may take.
const WAIT: Duration = Duration::from_millis(200);
const MORE: f64 = 1.5;
const RESIDENT_KIB: f64 = 80.0 * 1024.0;
const IDLE_SHARE: f64 = 0.015;

/// As many ports, and one more on each bridge; their other ends are in the node, too, and all are down: nothing is forwarded.
fn ports(rig: &Rig) -> Vec<BridgePort> {
    let mut batch = String::new();
    for bridge in 0..BRIDGES {
        writeln!(batch, "link add many{bridge} type bridge").unwrap();
    }
    let all = BRIDGES * (PER_BRIDGE + 1);
    for n in 0..all {
        let bridge = n % BRIDGES;
        writeln!(batch, "link add h{n} type veth peer name c{n} address {}", mac(n)).unwrap();
        writeln!(batch, "link set h{n} master many{bridge}").unwrap();
    }
    let path = rig.lab.root().join("batch");
    fs::write(&path, batch).unwrap();
    rig.ip(&["-batch", path.to_str().unwrap()]);
    let bridges: Vec<Interface> = (0..BRIDGES).map(|at| rig.interface(&format!("many{at}"))).collect();
    let index = |n: usize| nix::net::if_::if_nametoindex(format!("h{n}").as_str()).unwrap();
    let indexes: Vec<u32> = rig.node.enter(|| (0..all).map(index).collect()).unwrap();
    (0..all).map(|n| port(n, &bridges[n % BRIDGES], indexes[n])).collect()
}

fn mac(n: usize) -> String {
    format!("02:00:00:01:{:02x}:{:02x}", n / 256, n % 256)
}

fn port(n: usize, bridge: &Interface, index: u32) -> BridgePort {
    let template: BridgePort = serde_json::from_value(serde_json::json!({
        "key": { "network": "", "container": "", "ifname": "" },
        "bridge": { "name": "", "index": 0 },
        "host": { "name": "", "index": 0 },
        "mac": "", "ips": [], "mtu": 1500, "peer_up": false,
    }))
    .unwrap();
    let (network, container) = (format!("net{}", n % BRIDGES), format!("{n:064x}"));
    BridgePort {
        key: AttachmentKey { network, container, ifname: "eth0".into() },
        bridge: bridge.clone(),
        host: Interface { name: format!("h{n}"), index },
        mac: mac(n),
        ips: vec![
            format!("10.{}.{}.{}", 100 + n % BRIDGES, n / 2500, 1 + n / BRIDGES % 250).parse().unwrap(),
        ],
        ..template
    }
}

/// The median of attaching and detaching `port`.
fn attachment(rig: &Rig, port: &BridgePort) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        rig.attach(port).unwrap();
        rig.detach(port).unwrap();
        begun.elapsed()
    };
    let mut times: Vec<_> = (0..ROUNDS).map(once).collect();
    times.sort();
    times[ROUNDS / 2]
}

fn timed<T>(what: &str, look: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let seen = look();
    println!("{what} {:?}", begun.elapsed());
    (seen, begun.elapsed())
}

/// The longest time that a client waits beside scrapes, who asks for what takes no time.
fn answered_beside_scrapes(rig: &Rig) -> Duration {
    let longest = thread::scope(|scope| {
        let scraper = scope.spawn(|| (0..5).for_each(|_| drop(metrics::get(rig, "/metrics"))));
        let mut longest = Duration::ZERO;
        while !scraper.is_finished() {
            let begun = Instant::now();
            rig.ask(Request::Detach { key: nobody(), link: None }).unwrap();
            longest = longest.max(begun.elapsed());
            sleep(Duration::from_millis(2));
        }
        longest
    });
    println!("a client waited for {longest:?} at most beside scrapes");
    longest
}

fn nobody() -> AttachmentKey {
    AttachmentKey { network: "none".into(), container: "none".into(), ifname: "eth0".into() }
}

fn resident(rig: &Rig) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", rig.id())).unwrap();
    let number = |key: &str| -> f64 {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let [all, own] = ["VmRSS:", "RssAnon:"].map(number);
    println!("memory {all} KiB, {own} of its own");
    all
}

/// The part of a processor that the agent takes, and its wake-ups a second.
fn idle(rig: &Rig) -> (f64, f64) {
    let threads = || Threads::of(rig.id()).unwrap();
    let before = threads();
    sleep(IDLE);
    let done = threads().since(&before);
    let seconds = IDLE.as_secs_f64();
    (done.ran.as_secs_f64() / seconds, done.sleeps as f64 / seconds)
}

#[test]
#[ignore = "ten thousand links take minutes: xtask test --long"]
fn ten_thousand_attachments_on_ten_bridges_are_served_as_few_are() {
    let mut rig = Rig::bare();
    let arguments = ["--metrics", ADDRESS];
    rig.run_with("auto", &arguments);
    let (ports, _) = timed("links", || ports(&rig));
    let (more, many) = ports.split_at(BRIDGES);
    // Its bridge has the program of bridges already, as beside the others.
    rig.attach(&many[0]).unwrap();
    let alone = attachment(&rig, &more[0]);
    timed("attachments", || many.iter().for_each(|port| drop(rig.attach(port).unwrap())));
    let beside = attachment(&rig, &more[0]);
    println!("attaching and detaching alone {alone:?}, beside {} others {beside:?}", many.len());
    let (listed, ports_took) = timed("ports", || rig.ports());
    let (page, metrics_took) = timed("metrics", || metrics::get(&rig, "/metrics"));
    let waited = answered_beside_scrapes(&rig);
    assert_eq!(listed.len(), many.len());
    assert_eq!(metrics::sample(&page, "shunt_attachments "), many.len() as f64);
    drop((listed, page));
    // Leases, entries and programs have been looked at by then, and what the kernel told is over.
    sleep(Duration::from_secs(15));
    let (share, wake_ups) = idle(&rig);
    println!("idle: {:.2} % of a processor, {wake_ups} wake-ups a second", 100.0 * share);
    let before = resident(&rig);
    rig.kill();
    let ((), start) = timed("start", || rig.run_with("auto", &arguments));
    assert_eq!(rig.status().attachments, many.len());
    let after = resident(&rig);
    assert!(beside < alone.mul_f64(MORE), "{alone:?} became {beside:?}");
    assert!(waited < WAIT.mul_f64(FACTOR), "{waited:?}");
    assert!(ports_took < LOOK.mul_f64(FACTOR) && metrics_took < LOOK.mul_f64(FACTOR));
    assert!(start < START.mul_f64(FACTOR), "{start:?}");
    assert!(before.max(after) < RESIDENT_KIB * FACTOR, "{before} and {after} KiB");
    assert!(share < IDLE_SHARE * FACTOR, "{share}");
}
