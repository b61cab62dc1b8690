//! The ADD of a pod whose claims are prepared: it has their limits, whoever was restarted in between.

use serde_json::json;
use shunt_agent_api::{Bandwidth, BridgePort, ErrorKind, EventKind, Pod, Reply, Request};

use crate::capacity::capacity;
use crate::cluster::{Cluster, annotated, pod};
use crate::events::Subscriber;

const RATES: [&str; 2] = ["50M", "100M"];
const LIMITS: [Option<u64>; 2] = [Some(50), Some(100)];
const NONE: [Option<u64>; 2] = [None; 2];

#[test]
fn a_pod_has_its_claims_bandwidth_as_its_limits_both_ways_and_in_the_books() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    cluster.prepared("wire", "web", RATES);
    let port = cluster.container(2, "web");
    let subscriber = Subscriber::new(&cluster.rig);
    cluster.rig.attach(&port).unwrap();
    let event = subscriber.hear(EventKind::Claim);
    assert_eq!(event.detail, "claim team/wire, in bit/s: egress 50M; ingress 100M");
    assert_eq!(cluster.limits(&port), LIMITS);
    let queue = cluster.rig.node.command("tc", &["qdisc", "show", "dev", &port.host.name]).unwrap();
    assert!(queue.contains("tbf"), "{queue}");
    let uplink = capacity(&cluster.rig).uplinks.remove(0);
    assert_eq!((uplink.egress.allocated, uplink.ingress.allocated), (50_000_000, 100_000_000));
    // The plugin knows nothing of the claim.
    cluster.rig.check(&port).unwrap();
    cluster.rig.attach(&port).unwrap();
    cluster.rig.detach(&port);
    assert_eq!(capacity(&cluster.rig).uplinks[0].egress.allocated, 0);
    // Another pod's container is not limited.
    let other = cluster.container(3, "db");
    cluster.rig.attach(&other).unwrap();
    assert_eq!(cluster.limits(&other), NONE);
}

#[test]
fn the_agent_may_be_restarted_and_the_claim_deleted_between_any_two_steps() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    cluster.restart();
    cluster.server.store().objects.clear();
    cluster.server.go_away();
    let port = cluster.container(2, "web");
    cluster.rig.attach(&port).unwrap();
    assert_eq!(cluster.limits(&port), LIMITS);
    cluster.restart();
    assert_eq!(cluster.limits(&port), LIMITS);
    cluster.rig.check(&port).unwrap();
    assert_eq!(cluster.unprepare("wire"), "");
    assert_eq!(cluster.limits(&port), NONE);
    cluster.rig.check(&port).unwrap();
    cluster.restart();
    assert_eq!(cluster.limits(&port), NONE);
    cluster.rig.detach(&port).unwrap();
    cluster.rig.assert_empty();
}

#[test]
fn unprepare_takes_limits_and_file_away_before_and_after_the_del() {
    let mut cluster = Cluster::start();
    for (number, is_detached_first) in [(2, true), (3, false)] {
        cluster.prepared("wire", "web", RATES);
        let port = cluster.container(number, "web");
        cluster.rig.attach(&port).unwrap();
        if is_detached_first {
            cluster.rig.detach(&port).unwrap();
        }
        assert_eq!(cluster.unprepare("wire"), "");
        assert!(cluster.claim_files().is_empty());
        if !is_detached_first {
            let queue = cluster.rig.node.command("tc", &["qdisc", "show", "dev", &port.host.name]).unwrap();
            assert!(!queue.contains("tbf"), "{queue}");
            cluster.rig.detach(&port).unwrap();
        }
    }
    cluster.rig.assert_empty();
}

#[test]
fn with_an_annotation_the_lower_rate_holds_each_way_and_an_event_says_so() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    let port = BridgePort { bandwidth: annotated(20, 300), ..cluster.container(2, "web") };
    let subscriber = Subscriber::new(&cluster.rig);
    cluster.rig.attach(&port).unwrap();
    let detail = subscriber.hear(EventKind::Claim).detail;
    assert!(detail.contains("egress 20M as asked for, below the claim's 50M"), "{detail}");
    assert!(detail.contains("ingress 100M, below the 300M that were asked for"), "{detail}");
    assert_eq!(cluster.limits(&port), [Some(20), Some(100)]);
    cluster.rig.check(&port).unwrap();
    cluster.rig.attach(&port).unwrap();
    // A plugin further down the chain has limits of its own.
    let key = || port.key.clone();
    let limit = Request::Limit { key: key(), bandwidth: annotated(70, 10) };
    assert_eq!(cluster.rig.ask(limit).unwrap(), Reply::Limited);
    assert_eq!(cluster.limits(&port), [Some(50), Some(10)]);
    let check = Request::CheckLimit { key: key(), bandwidth: annotated(70, 10) };
    assert_eq!(cluster.rig.ask(check).unwrap(), Reply::Checked);
    // What was asked for is what is left.
    assert_eq!(cluster.unprepare("wire"), "");
    assert_eq!(cluster.limits(&port), [Some(70), Some(10)]);
}

#[test]
fn an_update_and_other_addresses_leave_the_claims_limits_in_force() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    let port = cluster.container(2, "web");
    cluster.rig.attach(&BridgePort { ips: Vec::new(), ..port.clone() }).unwrap();
    cluster.rig.ask(Request::Address { port: port.clone() }).unwrap();
    assert_eq!(cluster.limits(&port), LIMITS);
    let changed = BridgePort { bandwidth: annotated(10, 200), ..port.clone() };
    cluster.rig.ask(Request::Update { port: changed.clone(), keeps_mappings: false }).unwrap();
    assert_eq!(cluster.limits(&port), [Some(10), Some(100)]);
    cluster.rig.ask(Request::Restore { port: changed }).unwrap();
    assert_eq!(cluster.limits(&port), [Some(10), Some(100)]);
    assert_eq!(cluster.unprepare("wire"), "");
    assert_eq!(cluster.limits(&port), [Some(10), Some(200)]);
}

#[test]
fn a_claim_of_another_uplink_than_the_networks_is_refused_and_named() {
    let mut cluster = Cluster::start();
    cluster.keep("wire", "eth2", &["web"], RATES);
    cluster.prepare("wire").unwrap();
    let port = cluster.container(2, "web");
    let refused = cluster.rig.attach(&port).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Claim);
    let said = "claim team/wire is of uplink eth2, and network net goes by eth1";
    assert!(refused.message.contains(said), "{refused:?}");
    cluster.rig.assert_empty();
    let mut other = port;
    other.key.network = "other".into();
    cluster.rig.attach(&other).unwrap();
    assert_eq!(cluster.limits(&other), LIMITS);
}

#[test]
fn a_claim_limits_one_attachment_and_no_second_one() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    let port = cluster.container(2, "web");
    cluster.rig.attach(&port).unwrap();
    // The claim is reserved for another pod meanwhile, and the kubelet asks again.
    cluster.prepared("wire", "db", RATES);
    let second = cluster.container(3, "db");
    let refused = cluster.rig.attach(&second).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Claim);
    assert!(refused.message.contains("claim team/wire limits net/c2/eth0 already"), "{refused:?}");
    cluster.rig.detach(&port).unwrap();
    cluster.rig.attach(&second).unwrap();
    // The same pod's next sandbox may come before the DEL of the one that died.
    let next = cluster.container(4, "db");
    cluster.rig.attach(&next).unwrap();
    assert_eq!(cluster.limits(&next), LIMITS);
}

#[test]
fn a_second_pod_of_a_shared_claim_is_refused_and_the_pod_that_a_claim_passes_on_to_has_it() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    let port = cluster.container(2, "web");
    cluster.rig.attach(&port).unwrap();
    // The kubelet asks for a claim once. Both pods have it now.
    cluster.keep("wire", "eth1", &["web", "db"], RATES);
    for (name, claims) in
        [("db", json!([{ "name": "w", "resourceClaimName": "wire" }])), ("plain", json!([]))]
    {
        let object =
            json!({ "metadata": { "name": name }, "spec": { "containers": [], "resourceClaims": claims } });
        cluster.server.store().objects.insert(format!("/api/v1/namespaces/team/pods/{name}"), object);
    }
    let second = cluster.container(3, "db");
    let refused = cluster.rig.attach(&second).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Claim, "{refused:?}");
    assert!(refused.message.contains("claim team/wire: 2 pods share it (web, db)"), "{refused:?}");
    let plain = cluster.container(4, "plain");
    cluster.rig.attach(&plain).unwrap();
    assert_eq!(cluster.limits(&plain), NONE);
    // The first pod goes.
    cluster.rig.detach(&port).unwrap();
    cluster.keep("wire", "eth1", &["db"], RATES);
    cluster.rig.attach(&second).unwrap();
    assert_eq!(cluster.limits(&second), LIMITS);
    // A server that is away keeps nobody from starting.
    cluster.server.go_away();
    let stranger = cluster.container(5, "stranger");
    cluster.rig.attach(&stranger).unwrap();
    cluster.until_warned("it is not known whether pod team/stranger shares a claim of bandwidth");
}

#[test]
fn a_runtime_that_does_not_say_whose_container_it_is_is_warned_of_by_its_name() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    let nameless = Pod { runtime: "oldtime".into(), ..Pod::default() };
    let port = BridgePort { pod: Some(nameless), ..cluster.container(2, "web") };
    cluster.rig.attach(&port).unwrap();
    assert_eq!(cluster.limits(&port), NONE);
    cluster.until_warned("claim team/wire of pod web is prepared, and the runtime (oldtime) does not say");
    // A pod of another name is not the one that is waited for.
    let warnings = cluster.rig.status().warnings.len();
    let stranger = Pod { uid: String::new(), ..pod("db") };
    let port = BridgePort { pod: Some(stranger), ..cluster.container(3, "db") };
    cluster.rig.attach(&port).unwrap();
    assert_eq!(cluster.rig.status().warnings.len(), warnings);
}

#[test]
fn a_plugin_of_the_previous_release_says_nothing_of_pods_and_attaches_as_before() {
    let mut cluster = Cluster::start();
    let port = BridgePort { pod: None, bandwidth: annotated(5, 5), ..cluster.container(2, "web") };
    cluster.rig.attach(&port).unwrap();
    assert_eq!(cluster.limits(&port), [Some(5), Some(5)]);
    cluster.rig.check(&port).unwrap();
    assert_ne!(port.bandwidth, Bandwidth::default());
}
