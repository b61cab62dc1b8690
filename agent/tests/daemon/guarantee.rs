//! Guaranteed is had: on a full uplink a claimed pod has its rate beside unlimited neighbours and the node's own traffic.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

use shunt_agent_api::{Reply, Request};
use shunt_lab::{Namespace, measured, uninterrupted};

use crate::cluster::annotated;
use crate::full_uplink::{CLAIM, Full, GUARANTEE, UPLINK};
use crate::rig::eventually;
use crate::traffic::{round_trips, tcp_rate, udp_rate};

/// Measured again where a busy machine gave the senders too little time.
fn assert_claimed(what: &str, rate: impl FnMut() -> f64) {
    let (right, rate) = (CLAIM, measured(&(0.95 * CLAIM..1.05 * CLAIM), rate));
    println!(
        "{what}: {:.1} Mbit/s, {:+.1} % of {:.0}",
        rate / 1e6,
        (rate / right - 1.0) * 100.0,
        right / 1e6
    );
    assert!((rate / right - 1.0).abs() <= 0.05, "{what}: {rate} of {right}");
}

/// The address that a datagram arrives from.
fn udp_source(from: &Namespace, to: (&Namespace, SocketAddr)) -> IpAddr {
    let receiver = to.0.enter(|| UdpSocket::bind(to.1).unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let sender = from.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    sender.send_to(b"whence", to.1).unwrap();
    uninterrupted(|| receiver.recv_from(&mut [0; 8])).unwrap().1.ip()
}

#[test]
fn a_claimed_pod_has_its_rate_on_a_full_uplink() {
    for is_masqueraded in [true, false] {
        let mut full = Full::new(GUARANTEE);
        full.claimed(is_masqueraded);
        let _floods = full.fill(is_masqueraded);
        let way = if is_masqueraded { "masqueraded" } else { "routed by the kernel" };
        assert_claimed(&format!("UDP, {way}"), || udp_rate(full.inside(0), full.at(7), 500_000_000));
        assert_claimed(&format!("TCP, {way}"), || tcp_rate(full.inside(0), full.at(7)));
    }
}

/// Somebody else's rules for forwarded packets leave masquerading to the kernel: what reaches the uplink has the node's address.
#[test]
fn a_claimed_pod_that_the_kernel_masquerades_has_its_rate_on_a_full_uplink() {
    let mut full = Full::new(GUARANTEE);
    full.nft("add table ip services; add chain ip services forward { type filter hook forward priority 0; }");
    full.nft("add rule ip services forward tcp dport 25 drop");
    full.claimed(true);
    let _floods = full.fill(true);
    let source = udp_source(full.inside(0), full.at(6));
    assert_eq!(source, Ipv4Addr::new(192, 0, 2, 1), "masqueraded");
    assert_claimed("UDP, masqueraded by the kernel", || udp_rate(full.inside(0), full.at(7), 500_000_000));
    assert_claimed("TCP, masqueraded by the kernel", || tcp_rate(full.inside(0), full.at(7)));
    full.nft("flush ruleset");
    eventually("the rules are there again", || full.nft("list ruleset").contains("10.88.0.2 : 5347:"));
    assert_claimed("TCP, after a flush", || tcp_rate(full.inside(0), full.at(7)));
    assert_eq!(full.cluster.unprepare("wire"), "");
    assert!(!full.nft("list ruleset").contains("classes"), "{}", full.nft("list ruleset"));
}

/// What another tunnel of the node's carries has the node's address on the uplink, too.
#[test]
fn what_a_claimed_pod_sends_through_a_tunnel_of_the_nodes_is_in_its_class() {
    let mut full = Full::new(GUARANTEE);
    let tunnel = ["type", "vxlan", "id", "7", "dstport", "4789", "remote", "192.0.2.2"];
    full.cluster.rig.ip(&[&["link", "add", "tunnel"][..], &tunnel].concat());
    full.cluster.rig.ip(&["addr", "add", "198.51.100.1/24", "dev", "tunnel"]);
    full.cluster.rig.ip(&["link", "set", "tunnel", "up"]);
    let to = ["198.51.100.2", "lladdr", "02:00:00:00:01:02", "dev", "tunnel"];
    full.cluster.rig.ip(&[&["neighbour", "add"][..], &to].concat());
    full.claimed(false);
    full.container(3, "one", false);
    let claimed = full.claimed_class();
    let before = full.sent();
    for (which, class) in [(0, claimed.as_str()), (1, "5347:ffff")] {
        let socket = full.inside(which).enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        for _ in 0..50 {
            socket.send_to(&[7; 1000], "198.51.100.2:7").unwrap();
        }
        eventually("all of it is the class's", || full.sent()[class] >= before[class] + 50);
    }
    assert!(full.sent()[&claimed] < before[&claimed] + 60, "and nothing else is: {:?}", full.sent());
}

/// `SO_PRIORITY` may name any class of any queue: containers have `CAP_NET_RAW` by default, which suffices.
#[test]
fn a_container_that_sets_its_packets_priority_is_in_no_other_class_for_it() {
    for is_masqueraded in [true, false] {
        let mut full = Full::new(GUARANTEE);
        full.claimed(true);
        full.container(3, "one", is_masqueraded);
        let claimed = full.claimed_class();
        let minor = u32::from_str_radix(claimed.strip_prefix("5347:").unwrap(), 16).unwrap();
        let before = full.sent();
        for priority in [0x5347_0000, 0x5347_0000 | minor, 0x5347_fffe] {
            let socket = full.inside(1).enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
            setsockopt(&socket, sockopt::Priority, &priority.cast_signed()).unwrap();
            for _ in 0..50 {
                socket.send_to(&[7; 1000], full.at(7).1).unwrap();
            }
        }
        eventually("all of it is all else", || full.sent()["5347:ffff"] >= before["5347:ffff"] + 150);
        assert_eq!(full.sent()[&claimed], before[&claimed]);
        let direct = full.tc(&["-s", "-d", "qdisc", "show", "dev", "eth1", "root"]);
        assert!(direct.contains("direct_packets_stat 0"), "{direct}");
    }
}

#[test]
fn without_a_guarantee_the_claimed_pod_loses_and_waits() {
    let figures = |of_uplink: &str| {
        let mut full = Full::new(of_uplink);
        full.claimed(true);
        if of_uplink.is_empty() {
            let shaped = ["rate", "1gbit", "burst", "128k", "latency", "15ms"];
            full.tc(&[&["qdisc", "add", "dev", "eth1", "root", "tbf"][..], &shaped].concat());
        }
        let _floods = full.fill(true);
        std::thread::sleep(Duration::from_millis(500));
        let trips = round_trips(full.inside(0), full.at(8), 300);
        (tcp_rate(full.inside(0), full.at(7)), trips[150], trips[297])
    };
    let with = figures(GUARANTEE);
    let without = figures("");
    println!("TCP, round trip of 64 bytes (median, 99 of 100): {with:?}, without the guarantee {without:?}");
    assert!(with.0 > 0.95 * CLAIM && without.0 < 0.9 * CLAIM, "{with:?} {without:?}");
    assert!(with.1 < without.1, "{with:?} {without:?}");
}

#[test]
fn what_no_claim_uses_is_everybodys() {
    let mut full = Full::new(GUARANTEE);
    full.claimed(true);
    let _floods = full.fill(true);
    std::thread::sleep(Duration::from_millis(500));
    // More than what is theirs anyway, and no more than there is.
    let right = UPLINK - 0.7 * CLAIM..1.02 * UPLINK;
    let arrives = measured(&right, || full.arriving());
    println!("of what is idle: {:.1} Mbit/s", arrives / 1e6);
    assert!(right.contains(&arrives), "{arrives}");
}

#[test]
fn a_share_comes_and_goes_with_its_claim_and_stays_under_the_next_agent() {
    let mut full = Full::new(GUARANTEE);
    let shares = |full: &Full| full.classes().lines().filter(|line| line.contains("prio 0")).count();
    eventually("the queue is there", || full.root().contains("htb 5347:"));
    assert_eq!(shares(&full), 0, "{}", full.classes());
    let port = full.claimed(true);
    assert_eq!(shares(&full), 1, "{}", full.classes());
    assert!(full.classes().contains("rate 302800Kbit"), "{}", full.classes());
    let before = (full.classes(), full.tc(&["filter", "show", "dev", "eth1"]));
    assert!(before.1.contains("input dev veth2"), "{}", before.1);
    // A lower limit of a chained plugin is the share, too.
    let limit = |megabits| Request::Limit { key: port.key.clone(), bandwidth: annotated(megabits, megabits) };
    full.cluster.rig.ask(limit(100)).unwrap();
    assert!(full.classes().contains("rate 100933Kbit"), "{}", full.classes());
    full.cluster.rig.ask(limit(900)).unwrap();
    full.cluster.restart();
    assert_eq!((full.classes(), full.tc(&["filter", "show", "dev", "eth1"])), before);
    // Who takes it away finds it made again.
    full.tc(&["filter", "delete", "dev", "eth1", "parent", "5347:"]);
    full.tc(&[
        "class",
        "replace",
        "dev",
        "eth1",
        "parent",
        "5347:fffe",
        "classid",
        "5347:9",
        "htb",
        "rate",
        "1mbit",
    ]);
    eventually("it is as before", || {
        (full.classes(), full.tc(&["filter", "show", "dev", "eth1"]).lines().count())
            == (before.0.clone(), before.1.lines().count())
    });
    full.tc(&["qdisc", "delete", "dev", "eth1", "root"]);
    eventually("it is made again", || full.classes() == before.0);
    let bounds = |full: &Full| full.tc(&["qdisc", "show", "dev", "eth1"]).matches("bfifo").count();
    let bounded = bounds(&full);
    full.tc(&["qdisc", "replace", "dev", "eth1", "parent", "5347:ffff", "pfifo"]);
    eventually("what waits is bounded again", || bounds(&full) == bounded);
    assert_eq!(full.cluster.unprepare("wire"), "");
    assert_eq!(shares(&full), 0, "{}", full.classes());
    // No more wanted, it goes.
    let config = full.cluster.rig.lab.root().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace(GUARANTEE, "guarantee = false");
    std::fs::write(&config, text).unwrap();
    full.cluster.restart();
    assert!(full.root().contains("noqueue"), "{}", full.root());
}

#[test]
fn who_has_a_share_or_none_loses_nothing_while_others_come_and_go() {
    const TRIPS: u32 = 400;
    let mut full = Full::new(GUARANTEE);
    full.claimed(true);
    full.container(3, "plain", true);
    full.cluster.prepared("more", "late", ["200M", "200M"]);
    let late = full.cluster.container(4, "late");
    std::thread::scope(|scope| {
        let [claimed, plain] = [(0, 8), (1, 9)].map(|(which, port)| {
            let (full, at) = (&full, full.at(port));
            scope.spawn(move || round_trips(full.inside(which), at, TRIPS))
        });
        let mut turns = 0;
        while !(claimed.is_finished() && plain.is_finished()) {
            full.cluster.rig.attach(&late).unwrap();
            full.cluster.rig.detach(&late).unwrap();
            turns += 1;
        }
        let longest = [claimed, plain].map(|trips| *trips.join().unwrap().last().unwrap());
        println!("{turns} times, the longest round trips {longest:?}");
        assert!(
            turns > 10 && longest.iter().all(|trip| *trip < Duration::from_millis(500)),
            "{turns} {longest:?}"
        );
    });
    assert!(!full.classes().contains("201"), "{}", full.classes());
}

#[test]
fn what_is_uninstalled_leaves_the_uplink_its_own_queue() {
    let mut full = Full::new(GUARANTEE);
    full.claimed(true);
    assert!(full.root().contains("htb 5347:"), "{}", full.root());
    let rig = &full.cluster.rig;
    let nowhere = rig.lab.root().join("nowhere");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    command.arg("uninstall").arg("--config").arg(rig.lab.root().join("config.toml")).arg("--force");
    command.arg("--socket").arg(rig.socket()).arg("--state-dir").arg(rig.state());
    command.arg("--bpffs").arg(rig.lab.bpf_directory("agent"));
    for directory in ["--bin-dir", "--sbin-dir", "--conf-dir"] {
        command.arg(directory).arg(&nowhere);
    }
    let mut uninstall = || {
        let output = rig.node.enter(|| command.output().unwrap()).unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    uninstall();
    assert!(full.root().contains("noqueue"), "{}", full.root());
    // Also where nothing but the queue is left of an agent; somebody else's of the same handle stays.
    full.tc(&["qdisc", "add", "dev", "eth1", "root", "handle", "5347:", "htb", "default", "ffff"]);
    uninstall();
    assert!(full.root().contains("noqueue"), "{}", full.root());
    full.tc(&["qdisc", "add", "dev", "eth1", "root", "handle", "5347:", "pfifo"]);
    uninstall();
    assert!(full.root().contains("pfifo 5347:"), "{}", full.root());
}

#[test]
fn a_queue_of_somebody_elses_is_left_alone_and_told_of() {
    let mut full = Full::new("");
    full.tc(&["qdisc", "add", "dev", "eth1", "root", "handle", "7:", "pfifo"]);
    let config = full.cluster.rig.lab.root().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[uplinks.eth1]", "[uplinks.eth1]\nguarantee = true")).unwrap();
    full.cluster.restart();
    full.cluster
        .until_warned("uplink eth1 has `pfifo` at its root, which somebody else has put there: remove that");
    assert!(full.root().contains("pfifo 7:"), "{}", full.root());
    assert!(full.cluster.rig.status().healthy);
    full.claimed(true);
    full.tc(&["qdisc", "delete", "dev", "eth1", "root"]);
    eventually("it is shared out", || full.root().contains("htb 5347:"));
    eventually("nothing is wrong", || full.cluster.rig.status().warnings.is_empty());
}

#[test]
fn hardware_with_several_queues_is_left_alone_and_told_of() {
    let mut full = Full::new(GUARANTEE);
    full.cluster.rig.ip(&["link", "delete", "eth1"]);
    full.cluster.until_warned("uplink eth1 is not shared out: there is no such link");
    full.cluster.rig.ip(&["link", "add", "eth1", "numtxqueues", "2", "type", "ifb"]);
    full.cluster.rig.ip(&["link", "set", "eth1", "up"]);
    full.cluster.until_warned("uplink eth1 sends by several hardware queues (`mq` is at its root)");
    assert!(full.root().contains("mq 0:"), "{}", full.root());
    full.claimed(true);
    let audit = match full.cluster.rig.ask(Request::Audit) {
        Ok(Reply::Audited(audit)) => audit,
        other => panic!("{other:?}"),
    };
    assert!(audit.consistent, "all else is looked at: {audit:?}");
    assert!(audit.warnings.iter().any(|warning| warning.contains("several hardware queues")), "{audit:?}");
}
