use std::time::{Duration, Instant};

use shunt_agent_api::{
    AgentStatus, Allocation, CapacityReport, CarriedReport, DropReport, Limits, PoolReport, PortReport,
    SlotsReport, Traffic, UplinkReport, VlanReport,
};

use super::*;

pub(in super::super) fn port(container: &str) -> PortReport {
    PortReport {
        network: "pods".into(),
        container: container.into(),
        ifname: "eth0".into(),
        host_ifname: format!("veth-{container}"),
        host_ifindex: 7,
        mac: String::new(),
        ips: vec![[10, 0, 0, 1].into()],
        vlan: VlanReport::default(),
        restrictions: Vec::new(),
        limits: Limits::default(),
        kernels_way: Vec::new(),
        namespace: String::new(),
        pod: String::new(),
        pod_uid: String::new(),
        from: Traffic::default(),
        to: Traffic::default(),
    }
}

fn status() -> AgentStatus {
    serde_json::from_value(serde_json::json!({
        "version": "1", "abi": 1, "healthy": true, "reasons": [], "warnings": [], "attachments": 1,
        "programs": [], "uplinks": [],
    }))
    .unwrap()
}

/// A sample so many seconds after `begun`.
pub(in super::super) fn sample(begun: Instant, seconds: u64, ports: Vec<PortReport>) -> Sample {
    Sample {
        at: begun + Duration::from_secs(seconds),
        status: status(),
        ports,
        drops: Vec::new(),
        capacity: CapacityReport::default(),
    }
}

pub(in super::super) fn drop_report(reason: &str, port: &str, packets: u64) -> DropReport {
    DropReport { stage: "a stage".into(), reason: reason.into(), port: port.into(), packets, bytes: 0 }
}

fn traffic(bytes: u64, fast: u64, kernel: u64, dropped: u64) -> Traffic {
    Traffic { packets: fast + kernel, bytes, fast, kernel, dropped }
}

/// What two samples, two seconds apart, make of one port.
fn one_port(then: PortReport, now: PortReport) -> PortRates {
    let begun = Instant::now();
    let [then, now] = [sample(begun, 0, vec![then]), sample(begun, 2, vec![now])];
    Readout::between(Some(&then), &now).ports.remove(0)
}

#[test]
fn a_rate_is_what_a_counter_gains_in_a_second() {
    let then = PortReport { from: traffic(1_000, 10, 5, 2), ..port("one") };
    let now = PortReport { from: traffic(3_000, 30, 5, 3), to: traffic(500, 0, 4, 0), ..port("one") };
    let rates = one_port(then, now);
    assert_eq!(rates.sent, Some(Rates { bits: 8_000.0, fast: 10.0, kernel: 0.0, dropped: 0.5 }));
    assert_eq!(rates.received, Some(Rates { bits: 2_000.0, fast: 0.0, kernel: 2.0, dropped: 0.0 }));
}

#[test]
fn a_rate_is_unknown_without_an_earlier_counter() {
    let begun = Instant::now();
    let first = sample(begun, 0, vec![port("one")]);
    let readout = Readout::between(None, &first);
    assert_eq!((readout.seconds, readout.ports[0].sent), (0.0, None));
    let second = sample(begun, 2, vec![port("one"), port("two")]);
    let readout = Readout::between(Some(&first), &second);
    assert!(readout.ports[0].sent.is_some() && readout.ports[1].sent.is_none());
    // No time at all has passed.
    assert_eq!(Readout::between(Some(&second), &second).ports[0].sent, None);
    // The counters have begun anew, or are those of another interface.
    let then = PortReport { from: traffic(9, 9, 9, 9), ..port("one") };
    assert_eq!(one_port(then, PortReport { from: traffic(9, 9, 9, 8), ..port("one") }).sent, None);
    assert_eq!(one_port(port("one"), PortReport { host_ifindex: 8, ..port("one") }).sent, None);
}

#[test]
fn a_container_at_nine_tenths_of_a_limit_is_throttled_and_so_is_one_that_is_policed() {
    let limits = Limits { egress: Some(1_000), ingress: Some(8_000) };
    let at = |bytes| {
        let then = PortReport { limits: limits.clone(), ..port("one") };
        one_port(then.clone(), PortReport { from: traffic(bytes, 1, 0, 0), ..then })
    };
    // Bits a second are bytes times eight, over two seconds.
    assert_eq!((at(224).throttled, at(224).share()), (Vec::new(), 0.896));
    assert_eq!(at(226).throttled, ["egress"]);
    let begun = Instant::now();
    let mut then = sample(begun, 0, vec![port("one")]);
    let mut now = sample(begun, 2, vec![port("one")]);
    then.drops = vec![drop_report("isolated", "veth-one", 5), drop_report("storm_control", "veth-one", 7)];
    now.drops = vec![
        drop_report("isolated", "veth-one", 25),
        drop_report("storm_control", "veth-one", 7),
        drop_report("rate_exceeded", "veth-one", 4),
        drop_report("no_port", "veth-two", 100),
    ];
    let readout = Readout::between(Some(&then), &now);
    let rates = |drops: &[DropRate]| {
        drops.iter().map(|drop| (drop.reason.clone(), drop.rate.unwrap())).collect::<Vec<_>>()
    };
    let of_port = [("isolated", 10.0), ("rate_exceeded", 2.0), ("storm_control", 0.0)];
    let of_port = of_port.map(|(reason, rate)| (reason.to_owned(), rate));
    assert_eq!(rates(&readout.ports[0].drops), of_port);
    assert_eq!(readout.ports[0].throttled, ["egress"]);
    assert_eq!(rates(&readout.drops)[0], ("no_port".to_owned(), 50.0));
}

#[test]
fn an_uplink_has_what_is_allocated_claimed_and_used() {
    let pool = PoolReport { total: 1_000, reserved: 0, allocated: 300, free: 700 };
    let allocation = |container: &str, egress, claimed| Allocation {
        network: "pods".into(),
        container: container.into(),
        ifname: "eth0".into(),
        egress,
        ingress: 0,
        claimed,
    };
    let uplink = |egress, unknown| UplinkReport {
        name: "eth0".into(),
        speed: 0,
        egress: pool,
        ingress: pool,
        slots: SlotsReport::default(),
        allocations: vec![allocation("one", 100, true), allocation("two", 200, false)],
        unknown,
        carried: Some(CarriedReport { egress, ingress: 0 }),
    };
    let begun = Instant::now();
    let at = |seconds, egress, unknown| {
        let mut sample = sample(begun, seconds, Vec::new());
        sample.capacity.uplinks = vec![uplink(egress, unknown)];
        sample
    };
    let (then, now) = (at(0, 1_000, None), at(2, 2_000, None));
    let shown = Readout::between(Some(&then), &now).uplinks.remove(0);
    let egress = Direction { total: Some(1_000), allocated: 300, claimed: 100, used: Some(4_000.0) };
    assert_eq!(shown.egress, egress);
    assert_eq!((shown.ingress.claimed, shown.ingress.used), (0, Some(0.0)));
    let unknown = at(2, 0, Some("no speed".to_owned()));
    let shown = Readout::between(Some(&then), &unknown).uplinks.remove(0);
    assert_eq!((shown.egress.total, shown.egress.used), (None, None));
}

#[test]
fn a_name_is_the_pods_or_else_the_containers_and_never_speaks_to_the_terminal() {
    let begun = Instant::now();
    let name = |port| Readout::between(None, &sample(begun, 0, vec![port])).ports.remove(0).name;
    assert_eq!(name(port("0123456789abcdef")), "pods/0123456789abc:eth0");
    let pod = PortReport { namespace: "team".into(), pod: "web".into(), ..port("one") };
    assert_eq!(name(pod), "team/web:eth0");
    let hostile = PortReport { ifname: "\u{1b}[2J".into(), ..port("one") };
    assert_eq!(name(hostile), "pods/one:\\u{1b}[2J");
}
