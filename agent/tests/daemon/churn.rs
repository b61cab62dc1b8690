//! Many attachments that come and go: the agent grows by none of it, and a start costs each of them no more than few.

use std::fs;
use std::time::{Duration, Instant};

use shunt_agent_api::{AttachmentKey, BridgePort};

use crate::rig::{BRIDGE, Rig, eventually};

/// What an agent may take of memory that nobody else has with 1,000 attachments, in KiB. Most of it are the programs that aya keeps, and what the
/// allocator keeps of loading them.
const AT_MOST: u64 = 30 << 10;

/// How long a container may be without a program: 2 s on a machine that has the time.
const AT_MOST_AWAY: Duration = Duration::from_secs(10);

/// Memory of its own in KiB, and open files.
fn size(rig: &Rig) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{}/status", rig.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let files = fs::read_dir(format!("/proc/{}/fd", rig.id())).unwrap().count();
    (line.trim().trim_end_matches(" kB").parse().unwrap(), files)
}

/// As many ports, whose other ends are in the node, too.
fn ports(rig: &Rig, count: usize) -> Vec<BridgePort> {
    let batch = rig.lab.root().join("batch");
    let links = (0..count).map(|n| {
        let mac = mac(n);
        format!("link add h{n} type veth peer name c{n} address {mac}\nlink set h{n} master {BRIDGE} up\nlink set c{n} up\n")
    });
    fs::write(&batch, links.collect::<String>()).unwrap();
    rig.ip(&["-batch", batch.to_str().unwrap()]);
    let (bridge, template) = (rig.interface(BRIDGE), template());
    let port = |n: usize| BridgePort {
        key: AttachmentKey { network: "net".into(), container: format!("c{n}"), ifname: "eth0".into() },
        bridge: bridge.clone(),
        host: rig.interface(&format!("h{n}")),
        mac: mac(n),
        ips: vec![format!("10.88.{}.{}", 1 + n / 250, 1 + n % 250).parse().unwrap()],
        ..template.clone()
    };
    (0..count).map(port).collect()
}

fn mac(n: usize) -> String {
    format!("02:00:00:01:{:02x}:{:02x}", n / 256, n % 256)
}

fn template() -> BridgePort {
    serde_json::from_value(serde_json::json!({
        "key": { "network": "", "container": "", "ifname": "" },
        "bridge": { "name": "", "index": 0 },
        "host": { "name": "", "index": 0 },
        "mac": "", "ips": [], "mtu": 1500, "peer_up": true,
    }))
    .unwrap()
}

/// Detaches and attaches one after the other for a while, having done so with all once, so that the heap has its size.
fn churn(count: usize, time: Duration) {
    let mut rig = Rig::bare();
    rig.run_with("auto", &["--no-repairs"]);
    let ports = ports(&rig, count);
    ports.iter().for_each(|port| drop(rig.attach(port).unwrap()));
    let change = |port: &BridgePort| {
        assert!(rig.detach(port).is_some());
        rig.attach(port).unwrap();
    };
    ports.iter().for_each(change);
    let (before, files) = size(&rig);
    let begun = Instant::now();
    let (mut changes, mut most) = (0, before);
    while begun.elapsed() < time {
        change(&ports[changes % count]);
        changes += 1;
        if changes % 100 == 0 {
            most = most.max(size(&rig).0);
        }
    }
    let (after, files_after) = size(&rig);
    println!(
        "{count} attachments, {changes} churned in {:.0?}: {before} KiB before, {most} at most, {after} after; \
         {files} and {files_after} files",
        begun.elapsed()
    );
    assert_eq!(rig.status().attachments, count);
    let flat = before as f64 * 0.95..before as f64 * 1.05;
    assert!(flat.contains(&(after as f64)) && flat.contains(&(most as f64)), "{before}, {most}, {after} KiB");
    assert!(most <= AT_MOST, "{most} KiB of {AT_MOST}");
    assert!(files_after <= files + 2, "{files} files became {files_after}");
}

#[test]
fn a_hundred_attachments_that_come_and_go_leave_the_agent_as_large_as_it_was() {
    churn(100, Duration::from_secs(3));
}

#[test]
#[ignore = "five minutes: xtask test --long"]
fn a_thousand_attachments_that_come_and_go_for_five_minutes_leave_the_agent_as_large_as_it_was() {
    churn(1000, Duration::from_secs(300));
}

/// The processor time that reconciling took, by the agent's own word, the least of three starts.
fn start(rig: &mut Rig) -> Duration {
    let took = |rig: &mut Rig| {
        rig.kill();
        rig.run("auto");
        let log = rig.log();
        let line = log.lines().rfind(|line| line.contains("recovered")).unwrap().to_owned();
        let took = line.rsplit_once("processor=").unwrap().1.split(' ').next().unwrap().to_owned();
        let at = took.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
        let unit = if took[at..].starts_with("ms") {
            1e-3
        } else if took[at..].starts_with('s') {
            1.0
        } else {
            1e-6
        };
        Duration::from_secs_f64(took[..at].parse::<f64>().unwrap() * unit)
    };
    (0..3).map(|_| took(rig)).min().unwrap()
}

#[test]
#[ignore = "a thousand links take a minute: xtask test --long"]
fn a_start_costs_each_of_a_thousand_attachments_no_more_than_each_of_ten() {
    let mut each = Vec::new();
    for count in [10, 1000] {
        let mut rig = Rig::start("auto");
        let ports = ports(&rig, count);
        ports.iter().for_each(|port| drop(rig.attach(port).unwrap()));
        let took = start(&mut rig);
        println!(
            "{count} attachments: recovered with {took:?} of a processor, {:?} each",
            took / count as u32
        );
        each.push(took / count as u32);
    }
    assert!(each[1] <= each[0].mul_f64(1.2), "{each:?}");
}

/// Detaches programs behind the agent's back, and waits for each to be there again.
fn detach_and_wait(count: usize) {
    let rig = Rig::start("tcx");
    let ports = ports(&rig, count);
    ports.iter().for_each(|port| drop(rig.attach(port).unwrap()));
    let mut longest = Duration::ZERO;
    for port in [&ports[0], &ports[count / 2], &ports[count - 1]] {
        let pin = rig.pin(&format!("links/to_container-{}", port.host.index));
        let before = rig.status().repairs;
        let begun = Instant::now();
        shunt_lab::run("bpftool", &["link", "detach", "pinned", pin.to_str().unwrap()]).unwrap();
        eventually("it is attached again", || rig.status().repairs > before);
        longest = longest.max(begun.elapsed());
        rig.check(port).unwrap();
    }
    println!("{count} attachments: a program is back after {longest:?} at most");
    assert!(longest < AT_MOST_AWAY, "{longest:?}");
}

#[test]
fn a_program_that_is_detached_from_one_of_a_hundred_is_back_soon() {
    detach_and_wait(100);
}

#[test]
#[ignore = "a thousand links take a minute: xtask test --long"]
fn a_program_that_is_detached_from_one_of_a_thousand_is_back_as_soon() {
    detach_and_wait(1000);
}
