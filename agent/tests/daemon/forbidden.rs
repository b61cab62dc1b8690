//! An API server that forbids one verb after the other: the status says which, nothing is lost, and all goes on once it is allowed.

use serde_json::{Value, json};
use shunt_agent_api::BridgePort;

use crate::api_claims::path;
use crate::cluster::{Cluster, annotated};
use crate::rig::{PATIENCE, eventually};

fn forbid(cluster: &Cluster, verb: &'static str, resource: &'static str) {
    cluster.server.store().forbidden.push((verb, resource));
}

/// Allows everything, and waits until the status no longer says what was forbidden.
fn allow(cluster: &Cluster) {
    cluster.server.store().forbidden.clear();
    eventually("the status is clear", || cluster.rig.status().warnings.is_empty());
    assert!(cluster.rig.status().healthy);
}

/// What the slice says of the first uplink's egress.
fn published(cluster: &Cluster) -> Option<Value> {
    let store = cluster.server.store();
    Some(store.slice()?["spec"]["devices"][0]["capacity"]["egressBandwidth"]["value"].clone())
}

#[test]
fn each_verb_on_slices_is_told_of_and_they_are_as_they_should_be_once_it_is_allowed() {
    let cluster = Cluster::start();
    let whole = || published(&cluster) == Some(json!("1G"));
    eventually("it is published", whole);
    for verb in ["list", "watch", "create", "update"] {
        forbid(&cluster, verb, "resourceslices");
        // An update names the object.
        forbid(&cluster, verb, "node-1-bandwidth.shunt.dev");
        match verb {
            "update" => cluster.server.store().alter(|slice| {
                slice["spec"]["devices"][0]["capacity"]["egressBandwidth"]["value"] = json!("1k");
            }),
            "create" => cluster.server.store().delete_slices(),
            _ => cluster.server.store().end_watches(),
        }
        cluster.until_warned("the capacity is not published");
        cluster.until_warned(&format!("cannot {verb} "));
        let begun = std::time::Instant::now();
        allow(&cluster);
        eventually("it is published again", whole);
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[test]
fn a_slice_that_may_not_be_read_is_told_of_when_the_one_that_is_known_is_no_more() {
    let cluster = Cluster::start();
    let whole = || published(&cluster) == Some(json!("1G"));
    eventually("it is published", whole);
    // It is read alone after a conflict.
    forbid(&cluster, "get", "node-1-bandwidth.shunt.dev");
    cluster.server.store().conflicts = 1;
    cluster.server.store().alter(|slice| {
        slice["spec"]["devices"][0]["capacity"]["egressBandwidth"]["value"] = json!("1k");
    });
    cluster.until_warned("the capacity is not published: reading the slice: cannot get");
    allow(&cluster);
    eventually("it is published again", whole);
}

#[test]
fn claims_that_may_not_be_listed_or_watched_are_told_of_and_counted_once_it_is_allowed() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    let greedy = BridgePort { bandwidth: annotated(500, 1), ..cluster.container(2, "greedy") };
    for verb in ["list", "watch"] {
        forbid(&cluster, verb, "resourceclaims");
        cluster.restart();
        let said = "what the scheduler has given to claims lately is not known";
        cluster.until_warned(said);
        cluster.until_warned(&format!("cannot {verb} resourceclaims (403)"));
        cluster.rig.attach(&greedy).unwrap();
        cluster.rig.detach(&greedy).unwrap();
        allow(&cluster);
    }
    cluster.keep("wire", "eth1", &["web"], ["600M", "600M"]);
    eventually("it is counted", || match cluster.rig.attach(&greedy) {
        Ok(_) => cluster.rig.detach(&greedy).is_none(),
        Err(_) => true,
    });
}

#[test]
fn each_verb_on_claims_pods_and_events_is_told_of_and_nothing_is_lost() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    cluster.keep("wire", "eth1", &["web"], ["50M", "100M"]);
    forbid(&cluster, "get", "resourceclaims/wire");
    let error = cluster.prepare("wire").unwrap_err();
    assert!(error.contains("reading the claim: cannot get resourceclaims/wire (403)"), "{error}");
    allow(&cluster);
    assert_eq!(cluster.prepare("wire").unwrap(), ["eth1"]);

    forbid(&cluster, "patch", "resourceclaims/wire/status");
    let port = cluster.container(2, "web");
    cluster.rig.attach(&port).unwrap();
    assert_eq!(cluster.limits(&port), [Some(50), Some(100)]);
    cluster.until_warned("writing the claim's status: cannot patch resourceclaims/wire/status (403)");
    allow(&cluster);
    let status = || cluster.server.store().objects[&path("wire")]["status"]["devices"].clone();
    eventually("the claim says who has it", || status() != Value::Null);

    forbid(&cluster, "get", "pods/db");
    let second = cluster.container(3, "db");
    cluster.rig.attach(&second).unwrap();
    cluster.until_warned(
        "it is not known whether pod team/db shares a claim of bandwidth: reading the pod: cannot get",
    );
    // It is cleared by the next pod that can be looked up.
    cluster.server.store().forbidden.clear();
    let object = json!({ "metadata": { "name": "last" }, "spec": { "containers": [] } });
    cluster.server.store().objects.insert("/api/v1/namespaces/team/pods/last".into(), object);
    let last = cluster.container(4, "last");
    cluster.rig.attach(&last).unwrap();
    allow(&cluster);

    forbid(&cluster, "create", "events");
    let greedy = BridgePort { bandwidth: annotated(2000, 1), ..cluster.container(5, "last") };
    cluster.rig.attach(&greedy).unwrap_err();
    cluster.until_warned("events of pods are not written: creating the event: cannot create events (403)");
    allow(&cluster);
    eventually("the event is written", || cluster.server.store().events.len() == 1);
    cluster.rig.check(&port).unwrap();
}
