//! One book: what annotations take is not offered to claims, and what is promised to claims is not given to annotations.

use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_agent::capacity::Quantity;
use shunt_agent_api::{BridgePort, ErrorKind};

use crate::cluster::{Cluster, annotated};
use crate::rig::eventually;

/// What the slice offers of the first uplink, egress and ingress, in megabits a second.
fn offered(cluster: &Cluster) -> Option<[u64; 2]> {
    let store = cluster.server.store();
    let capacity = &store.slice()?["spec"]["devices"][0]["capacity"];
    let bits = |way: &Value| way["value"].as_str()?.parse::<Quantity>().ok().map(|quantity| quantity.0);
    Some([bits(&capacity["egressBandwidth"])? / 1_000_000, bits(&capacity["ingressBandwidth"])? / 1_000_000])
}

/// Waits until the slice offers so much; how long that took.
fn until_offered(cluster: &Cluster, megabits: [u64; 2]) -> Duration {
    let begun = Instant::now();
    eventually("it is offered", || offered(cluster) == Some(megabits));
    begun.elapsed()
}

#[test]
fn what_annotations_take_is_no_longer_offered_and_what_claims_have_still_is() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    until_offered(&cluster, [1000, 1000]);
    let plain = BridgePort { bandwidth: annotated(300, 100), ..cluster.container(2, "plain") };
    cluster.rig.attach(&plain).unwrap();
    let took = until_offered(&cluster, [700, 900]);
    println!("offered after {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    cluster.prepared("wire", "web", ["600M", "600M"]);
    let web = cluster.container(3, "web");
    cluster.rig.attach(&web).unwrap();
    let json = serde_json::to_value(crate::capacity::capacity(&cluster.rig)).unwrap();
    let claimed = |container: &str| {
        let of = json["uplinks"][0]["allocations"].as_array().unwrap();
        of.iter().find(|one| one["container"] == container).unwrap()["claimed"].clone()
    };
    assert_eq!((claimed("c2"), claimed("c3")), (Value::Null, Value::Bool(true)));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(offered(&cluster), Some([700, 900]));
    // A restart of agent and kubelet changes nothing of it.
    cluster.server.store().delete_slices();
    until_offered(&cluster, [700, 900]);
    cluster.restart();
    std::thread::sleep(Duration::from_millis(500));
    until_offered(&cluster, [700, 900]);
    cluster.rig.detach(&plain).unwrap();
    assert!(until_offered(&cluster, [1000, 1000]) < Duration::from_secs(1));
}

#[test]
fn what_a_prepared_claim_waits_for_is_given_to_no_annotation() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    cluster.prepared("wire", "web", ["600M", "600M"]);
    let greedy = BridgePort { bandwidth: annotated(500, 1), ..cluster.container(2, "greedy") };
    let refused = cluster.rig.attach(&greedy).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Capacity);
    assert!(refused.message.contains("400M of 1G bit/s left for egress, and 500M"), "{refused:?}");
    let modest = BridgePort { bandwidth: annotated(400, 1), ..greedy.clone() };
    cluster.rig.attach(&modest).unwrap();
    // The claim's own pod finds what it was promised.
    let web = cluster.container(3, "web");
    cluster.rig.attach(&web).unwrap();
    assert_eq!(cluster.limits(&web), [Some(600), Some(600)]);
    // Attached, it counts once.
    cluster.rig.detach(&modest).unwrap();
    cluster.rig.attach(&modest).unwrap();
    cluster.rig.detach(&web).unwrap();
    assert_eq!(cluster.unprepare("wire"), "");
    cluster.rig.detach(&modest).unwrap();
    // It is allocated until somebody deletes it.
    cluster.rig.attach(&greedy).unwrap_err();
    cluster.server.store().delete_claim(&crate::api_claims::path("wire"));
    eventually("it is free", || cluster.rig.attach(&greedy).is_ok());
}

#[test]
fn what_the_scheduler_has_given_to_a_claim_is_given_to_no_annotation_before_it_is_prepared() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    let greedy = BridgePort { bandwidth: annotated(500, 1), ..cluster.container(2, "greedy") };
    let asked = |cluster: &Cluster, is_watch: bool| {
        let store = cluster.server.store();
        let claims = store.asked.iter().filter(|asked| asked.contains("resourceclaims?"));
        claims.filter(|asked| asked.contains("watch") == is_watch).count()
    };
    let watches = |cluster: &Cluster| asked(cluster, true);
    eventually("claims are watched", || watches(&cluster) == 1);
    cluster.keep("wire", "eth1", &["web"], ["600M", "600M"]);
    let begun = Instant::now();
    eventually("it is refused", || match cluster.rig.attach(&greedy) {
        Ok(_) => {
            cluster.rig.detach(&greedy).unwrap();
            false
        }
        Err(refused) => {
            let said = "400M of 1G bit/s left for egress, and 500M";
            assert!(refused.kind == ErrorKind::Capacity && refused.message.contains(said), "{refused:?}");
            true
        }
    });
    println!("counted after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(1));
    // The next agent lists it. A server that is away takes nothing from what is known.
    cluster.restart();
    eventually("claims are watched", || watches(&cluster) == 2);
    cluster.server.go_away();
    assert_eq!(cluster.rig.attach(&greedy).unwrap_err().kind, ErrorKind::Capacity);
    cluster.server.come_back(&cluster.rig);
    // Prepared, it counts once, and its own pod finds what it was promised.
    cluster.prepare("wire").unwrap();
    let modest = BridgePort { bandwidth: annotated(400, 1), ..greedy.clone() };
    cluster.rig.attach(&modest).unwrap();
    let web = cluster.container(3, "web");
    cluster.rig.attach(&web).unwrap();
    for port in [&modest, &web] {
        cluster.rig.detach(port).unwrap();
    }
    assert_eq!(cluster.unprepare("wire"), "");
    // It is allocated until it is deleted.
    assert_eq!(cluster.rig.attach(&greedy).unwrap_err().kind, ErrorKind::Capacity);
    eventually("claims are watched again", || watches(&cluster) >= 3);
    assert_eq!(asked(&cluster, false), 2, "each agent has listed them once");
    cluster.server.store().delete_claim(&crate::api_claims::path("wire"));
    eventually("it is free", || cluster.rig.attach(&greedy).is_ok());
}
