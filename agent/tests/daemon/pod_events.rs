//! Events of pods for what their users can cure, and what a server that refuses them costs.

use std::time::Duration;

use serde_json::{Value, json};
use shunt_agent_api::{BridgePort, ErrorKind, PortMapping, Protocol, Request};

use crate::api_store::Mood;
use crate::cluster::{Cluster, annotated, timed};
use crate::rig::eventually;

fn events(cluster: &Cluster) -> Vec<Value> {
    cluster.server.store().events.clone()
}

/// The event of a pod with this reason, once it is there.
fn told(cluster: &Cluster, pod: &str, reason: &str) -> Value {
    let find = || {
        let is_it = |event: &Value| event["regarding"]["name"] == pod && event["reason"] == reason;
        events(cluster).into_iter().find(is_it)
    };
    eventually(reason, || find().is_some());
    find().unwrap()
}

fn mapped(port: &BridgePort) -> BridgePort {
    let mapping = PortMapping {
        protocol: Protocol::Tcp,
        host_ip: None,
        host_port: 8080,
        container_port: 80,
        masquerade: false,
        keeps_source: false,
    };
    BridgePort { mappings: vec![mapping], ..port.clone() }
}

#[test]
fn what_a_user_can_cure_is_an_event_of_the_pod() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    let greedy = BridgePort { bandwidth: annotated(2000, 1), ..cluster.container(2, "greedy") };
    assert_eq!(cluster.rig.attach(&greedy).unwrap_err().kind, ErrorKind::Capacity);
    let event = told(&cluster, "greedy", "BandwidthExceeded");
    assert_eq!(
        event["regarding"],
        json!({ "apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "greedy", "uid": "pod-greedy" })
    );
    assert_eq!((&event["type"], &event["reportingInstance"]), (&json!("Warning"), &json!("node-1")));
    assert_eq!(event["reportingController"], "bandwidth.shunt.dev");
    let note = event["note"].as_str().unwrap();
    assert!(note.contains("uplink eth1 has 1G of 1G bit/s left for egress, and 2G"), "{note}");

    let first = mapped(&cluster.container(3, "first"));
    cluster.rig.attach(&first).unwrap();
    let second = mapped(&cluster.container(4, "second"));
    cluster.rig.attach(&second).unwrap_err();
    let note = told(&cluster, "second", "HostPortTaken")["note"].clone();
    assert_eq!(note, "another pod of this node has the host port 8080/tcp", "and not which: others read it");

    cluster.keep("other", "eth2", &["away"], ["1M", "1M"]);
    cluster.prepare("other").unwrap();
    let away = cluster.container(5, "away");
    cluster.rig.attach(&away).unwrap_err();
    told(&cluster, "away", "ClaimOfAnotherUplink");

    cluster.prepared("wire", "web", ["50M", "100M"]);
    let web = BridgePort { bandwidth: annotated(20, 300), ..cluster.container(6, "web") };
    cluster.rig.attach(&web).unwrap();
    let event = told(&cluster, "web", "LimitsDiffer");
    assert_eq!(event["type"], "Normal");
    assert!(event["note"].as_str().unwrap().contains("the lower one holds each way"), "{event}");
    let again = BridgePort { pod: web.pod.clone(), ..cluster.container(7, "web") };
    let again =
        BridgePort { key: shunt_agent_api::AttachmentKey { ifname: "eth1".into(), ..again.key }, ..again };
    cluster.rig.attach(&again).unwrap_err();
    told(&cluster, "web", "ClaimShared");
}

#[test]
fn a_chained_plugins_limit_and_host_port_are_told_of_the_attachments_pod() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    let (one, two) = (mapped(&cluster.container(2, "one")), cluster.container(3, "two"));
    for port in [&one, &two] {
        cluster.rig.attach(port).unwrap();
    }
    let key = || two.key.clone();
    cluster.rig.ask(Request::Limit { key: key(), bandwidth: annotated(2000, 1) }).unwrap_err();
    told(&cluster, "two", "BandwidthExceeded");
    cluster.rig.ask(Request::Map { key: key(), mappings: one.mappings }).unwrap_err();
    told(&cluster, "two", "HostPortTaken");
}

#[test]
fn a_pod_that_is_refused_again_and_again_has_one_event_whose_series_counts() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    let greedy = BridgePort { bandwidth: annotated(2000, 1), ..cluster.container(2, "greedy") };
    let refuse = || cluster.rig.attach(&greedy).unwrap_err();
    for _ in 0..20 {
        refuse();
    }
    std::thread::sleep(Duration::from_secs(61));
    // Who may not patch is told so, and nothing is lost.
    cluster.server.store().forbidden.push(("patch", ""));
    refuse();
    cluster.until_warned("events of pods are not written: patching the event: cannot patch");
    cluster.server.store().forbidden.clear();
    eventually("the series counts", || events(&cluster)[0]["series"]["count"] == 21);
    assert_eq!(events(&cluster).len(), 1);
}

#[test]
fn a_server_that_forbids_or_is_silent_delays_no_add_and_gets_what_is_left_later() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    cluster.server.store().mood = Mood::Forbids;
    let greedy = BridgePort { bandwidth: annotated(2000, 1), ..cluster.container(2, "greedy") };
    cluster.rig.attach(&greedy).unwrap_err();
    cluster
        .until_warned("events of pods are not written: creating the event: this node may not do that (403)");
    assert!(cluster.rig.status().healthy);
    cluster.server.store().mood = Mood::Well;
    told(&cluster, "greedy", "BandwidthExceeded");
    let is_warned = || cluster.rig.status().warnings.iter().any(|warning| warning.contains("events of pods"));
    eventually("it is written", || !is_warned());
    cluster.server.store().lag = Duration::from_secs(20);
    let (_, took) = timed(|| {
        for number in 0..400 {
            let mut port = greedy.clone();
            port.pod.as_mut().unwrap().uid = format!("uid-{number}");
            cluster.rig.attach(&port).unwrap_err();
        }
    });
    println!("400 refusals beside a silent server took {took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    cluster.server.store().lag = Duration::ZERO;
    let log = cluster.rig.log();
    assert!(log.matches("events of pods are not written").count() <= 2, "{log}");
}

#[test]
fn a_pod_without_a_uid_has_no_event() {
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    let nameless = BridgePort { pod: None, bandwidth: annotated(2000, 1), ..cluster.container(2, "x") };
    cluster.rig.attach(&nameless).unwrap_err();
    let named = BridgePort { bandwidth: annotated(2000, 1), ..cluster.container(3, "named") };
    cluster.rig.attach(&named).unwrap_err();
    told(&cluster, "named", "BandwidthExceeded");
    assert_eq!(events(&cluster).len(), 1);
}
