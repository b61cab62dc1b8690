//! The page as Prometheus reads it.

use std::collections::BTreeSet;

use shunt_agent_api::{
    Allocation, BridgeUplinkReport, Limits, ProgramMode, ProgramReport, Protocol, SlotsReport, VlanReport,
    Volume,
};

use super::*;
use crate::departed::Dropped;

fn snapshot() -> Snapshot {
    let traffic =
        |packets| Traffic { packets, bytes: 100 * packets, fast: packets - 1, kernel: 1, dropped: 2 };
    let pool = PoolReport { total: 8_000, reserved: 80, allocated: 800, free: 7_200 };
    Snapshot {
        status: AgentStatus {
            version: "1.2.3".into(),
            abi: 4,
            healthy: true,
            obstacles: Vec::new(),
            sold_out: Vec::new(),
            reasons: Vec::new(),
            warnings: vec!["a \"quoted\"\nwarning".into()],
            attachments: 1,
            repairs: 5,
            unrepaired: 2,
            flows_in_use: 45,
            flow_evictions: 7,
            grace_periods: None,
            filters: None,
            programs: vec![ProgramReport {
                name: "from_container".into(),
                ifname: "veth1".into(),
                mode: ProgramMode::Tcx,
                id: 6,
            }],
            uplinks: vec!["eth1".into()],
            relocations: Vec::new(),
            vlan_gateways: Vec::new(),
            bridge_uplinks: vec![BridgeUplinkReport {
                name: "eth2".into(),
                bridge: "cni0".into(),
                blocked: false,
                stations: 12,
                refused: 3,
                moved: 1,
                from: traffic(40),
                to: traffic(50),
            }],
        },
        ports: vec![PortReport {
            network: "net".into(),
            container: "c\"1\\".into(),
            ifname: "eth0".into(),
            host_ifname: "veth1".into(),
            host_ifindex: 7,
            mac: "02:00:00:00:00:01".into(),
            ips: Vec::new(),
            vlan: VlanReport::default(),
            restrictions: Vec::new(),
            limits: Limits { ingress: None, egress: Some(800) },
            kernels_way: Vec::new(),
            namespace: String::new(),
            pod: String::new(),
            pod_uid: String::new(),
            from: traffic(10),
            to: traffic(20),
        }],
        mappings: vec![MappingReport {
            proto: Protocol::Tcp,
            host_ip: None,
            host_port: 8080,
            network: "net".into(),
            container: "c1".into(),
            ifname: "eth0".into(),
            namespace: String::new(),
            pod: String::new(),
            container_ips: Vec::new(),
            container_port: 80,
            kernel: false,
            connections: 3,
            from: Volume { packets: 4, bytes: 400 },
            to: Volume { packets: 5, bytes: 500 },
        }],
        drops: vec![DropReport {
            stage: "police".into(),
            reason: "rate_exceeded".into(),
            port: "veth1".into(),
            packets: 2,
            bytes: 200,
        }],
        capacity: CapacityReport {
            uplinks: vec![UplinkReport {
                name: "eth1".into(),
                speed: 16_000,
                egress: pool,
                ingress: pool,
                slots: SlotsReport { total: 9, free: 8 },
                allocations: vec![Allocation {
                    network: "net".into(),
                    container: "c1".into(),
                    ifname: "eth0".into(),
                    egress: 800,
                    ingress: 0,
                    claimed: false,
                }],
                unknown: None,
                carried: None,
            }],
        },
        labels: MetricsLabels::Pod,
        departed: Departed::default(),
        gone_host_ports: BTreeMap::new(),
    }
}

/// The same where every label is known.
pub(in super::super) fn full() -> Snapshot {
    let mut full = snapshot();
    (full.ports[0].namespace, full.ports[0].pod) = ("team".into(), "web".into());
    let (container, ifname) = (full.ports[0].container.clone(), full.ports[0].ifname.clone());
    let allocation = &mut full.capacity.uplinks[0].allocations[0];
    (allocation.container, allocation.ifname) = (container, ifname);
    (full.mappings[0].namespace, full.mappings[0].pod) = ("team".into(), "web".into());
    full.drops.push(DropReport { port: "eth9".into(), ..full.drops[0].clone() });
    full
}

/// The names of the samples on a page.
pub(in super::super) fn names(page: &str) -> BTreeSet<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).collect()
}

#[test]
fn the_page_is_what_prometheus_reads() {
    let page = text(&snapshot()).unwrap();
    let port = r#"network="net",container="c\"1\\",interface="eth0",host_interface="veth1""#;
    for line in [
        r#"shunt_build_info{version="1.2.3",abi="4"} 1"#.to_owned(),
        "# TYPE shunt_agent_healthy gauge\nshunt_agent_healthy 1".to_owned(),
        "# TYPE shunt_repairs counter\nshunt_repairs_total 5".to_owned(),
        "# TYPE shunt_flow_room_used_ratio gauge\nshunt_flow_room_used_ratio 0.45".to_owned(),
        "shunt_unrepaired 2".to_owned(),
        "# TYPE shunt_flow_evictions counter\nshunt_flow_evictions_total 7".to_owned(),
        format!(r#"shunt_port_packets_total{{{port},direction="from",path="fast"}} 9"#),
        format!(r#"shunt_port_packets_total{{{port},direction="to",path="kernel"}} 1"#),
        format!(r#"shunt_port_bytes_total{{{port},direction="to"}} 2000"#),
        format!(r#"shunt_port_limit_bytes_per_second{{{port},direction="from"}} 100.0"#),
        r#"shunt_dropped_packets_total{host_interface="veth1",stage="police",reason="rate_exceeded"} 2"#
            .to_owned(),
        r#"shunt_uplink_free_bytes_per_second{uplink="eth1",direction="egress"} 900.0"#.to_owned(),
        r#"shunt_bridge_uplink_packets_total{uplink="eth2",bridge="cni0",direction="from",path="fast"} 39"#
            .to_owned(),
        r#"shunt_bridge_uplink_bytes_total{uplink="eth2",bridge="cni0",direction="to"} 5000"#.to_owned(),
        r#"shunt_bridge_uplink_stations{uplink="eth2",bridge="cni0"} 12.0"#.to_owned(),
        r#"shunt_bridge_uplink_unlearned_stations_total{uplink="eth2",bridge="cni0"} 3"#.to_owned(),
        "shunt_slots_free 8".to_owned(),
        "shunt_flows 3".to_owned(),
        r#"shunt_mapping_packets_total{network="net",container="c1",protocol="tcp",host_address="",host_port="8080",direction="from"} 4"#.to_owned(),
        r#"shunt_mapping_bytes_total{network="net",container="c1",protocol="tcp",host_address="",host_port="8080",direction="to"} 500"#.to_owned(),
        r#"shunt_mapping_flows{network="net",container="c1",protocol="tcp",host_address="",host_port="8080"} 3.0"#.to_owned(),
    ] {
        assert!(page.contains(&line), "{line}\nis not in\n{page}");
    }
    assert!(page.ends_with("# EOF\n"), "{page}");
}

/// Two containers of one namespace, one of another, and one that is gone.
fn of_three_pods(labels: MetricsLabels) -> Snapshot {
    let mut known = snapshot();
    let pod = |container: &str, namespace: &str| PortReport {
        container: container.into(),
        host_ifname: format!("veth-{container}"),
        namespace: namespace.into(),
        pod: format!("pod-{container}"),
        ..known.ports[0].clone()
    };
    known.ports = vec![pod("a", "team"), pod("b", "team"), pod("c", "te\"am\n2")];
    let drop = |port: &str| DropReport { port: port.into(), ..known.drops[0].clone() };
    known.drops = vec![drop("veth-a"), drop("veth-b"), drop("eth9")];
    known.mappings[0].namespace = "team".into();
    known.gone_host_ports.insert("team".into(), [Volume { packets: 6, bytes: 600 }; 2]);
    let gone = Carried {
        from: Traffic { packets: 3, bytes: 1, fast: 2, kernel: 1, dropped: 1 },
        drops: vec![Dropped {
            stage: "police".into(),
            reason: "rate_exceeded".into(),
            packets: 5,
            bytes: 50,
        }],
        ..Carried::default()
    };
    known.departed.add("team", &gone, |_| true);
    Snapshot { labels, ..known }
}

#[test]
fn pods_are_named_where_they_are_known_and_escaped() {
    let page = text(&of_three_pods(MetricsLabels::Pod)).unwrap();
    let port = r#"network="net",container="c",interface="eth0",host_interface="veth-c",direction="from""#;
    let line = format!(r#"shunt_port_bytes_total{{{port},namespace="te\"am\n2",pod="pod-c"}} 1000"#);
    assert!(page.contains(&line), "{line}\nis not in\n{page}");
    assert!(!page.contains(r#"namespace="""#), "{page}");
}

#[test]
fn a_namespace_is_the_sum_of_its_containers_and_of_those_that_are_gone() {
    let page = text(&of_three_pods(MetricsLabels::Namespace)).unwrap();
    for line in [
        r#"shunt_port_bytes_total{direction="from",namespace="team"} 2001"#,
        r#"shunt_port_bytes_total{direction="from",namespace="te\"am\n2"} 1000"#,
        r#"shunt_port_packets_total{direction="from",path="fast",namespace="team"} 20"#,
        r#"shunt_port_limit_bytes_per_second{direction="from",namespace="team"} 200.0"#,
        r#"shunt_dropped_packets_total{stage="police",reason="rate_exceeded",namespace="team"} 9"#,
        r#"shunt_dropped_packets_total{host_interface="eth9",stage="police",reason="rate_exceeded"} 2"#,
        r#"shunt_mapping_packets_total{direction="from",namespace="team"} 10"#,
        r#"shunt_mapping_flows{namespace="team"} 3.0"#,
        r#"shunt_allocation_bytes_per_second{uplink="eth1",direction="egress",namespace=""} 100.0"#,
    ] {
        assert!(page.contains(line), "{line}\nis not in\n{page}");
    }
    assert!(!page.contains("container=") && !page.contains("pod="), "{page}");
}

#[test]
fn a_node_is_the_sum_of_all() {
    let page = text(&of_three_pods(MetricsLabels::Node)).unwrap();
    for line in [
        r#"shunt_port_bytes_total{direction="from"} 3001"#,
        r#"shunt_port_dropped_packets_total{direction="from"} 7"#,
        r#"shunt_dropped_packets_total{stage="police",reason="rate_exceeded"} 9"#,
        r#"shunt_mapping_bytes_total{direction="to"} 1100"#,
    ] {
        assert!(page.contains(line), "{line}\nis not in\n{page}");
    }
    assert!(!page.contains("namespace="), "{page}");
}

#[test]
fn names_keep_to_the_conventions() {
    let page = text(&snapshot()).unwrap();
    for name in names(&page) {
        assert!(name.starts_with("shunt_"), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let counts = page.contains(&format!("# TYPE {} counter", name.trim_end_matches("_total")));
        assert_eq!(
            counts,
            name.ends_with("_total"),
            "{name}: what only grows is a total, and nothing else is"
        );
    }
    // One description, and only one, for each family.
    let described: Vec<_> = page.lines().filter(|line| line.starts_with("# TYPE")).collect();
    assert_eq!(described.len(), described.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(described.len(), names(&page).len());
}

#[test]
fn without_uplinks_and_attachments_there_is_a_page_too() {
    let mut empty = snapshot();
    (empty.ports, empty.drops, empty.capacity) = (Vec::new(), Vec::new(), CapacityReport::default());
    let page = text(&empty).unwrap();
    assert!(page.contains("shunt_attachments 1") && page.ends_with("# EOF\n"), "{page}");
}
