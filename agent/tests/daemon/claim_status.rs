//! What a claim's own status says once its pod is attached.

use serde_json::{Value, json};
use shunt_agent_api::{BridgePort, Request, Service};

use crate::api_claims::path;
use crate::api_store::Mood;
use crate::cluster::Cluster;
use crate::rig::eventually;

const RATES: [&str; 2] = ["50M", "100M"];

/// The devices of a claim's status; null where it has none.
fn devices(cluster: &Cluster, name: &str) -> Value {
    cluster.server.store().objects[&path(name)]["status"]["devices"].clone()
}

fn patches(cluster: &Cluster) -> usize {
    cluster.server.store().asked.iter().filter(|asked| asked.starts_with("PATCH")).count()
}

#[test]
fn a_claim_in_use_says_which_interface_has_it_and_is_written_once() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    let port = cluster.container(2, "web");
    let service = Service { gateways: vec!["10.88.0.1/24".into()], ..Service::default() };
    let port = BridgePort { service, ..port };
    cluster.rig.attach(&port).unwrap();
    eventually("the status is written", || devices(&cluster, "wire") != Value::Null);
    let device = &devices(&cluster, "wire")[0];
    assert_eq!((&device["device"], &device["shareID"]), (&json!("eth1"), &json!("s-1")));
    assert_eq!(
        device["networkData"],
        json!({ "interfaceName": "eth0", "ips": ["10.88.0.2/24"], "hardwareAddress": port.mac })
    );
    let condition = &device["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Ready"), &json!("True")));
    assert_eq!(condition["message"], "limited to egress 50M, ingress 100M bit/s of uplink eth1 at most");
    // The next agent finds it said.
    let written = patches(&cluster);
    cluster.server.store().asked.clear();
    cluster.restart();
    let has_read = || cluster.server.store().asked.iter().any(|asked| asked.contains("resourceclaims/wire"));
    eventually("the next agent looks", has_read);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!((written, patches(&cluster)), (1, 0));
}

#[test]
fn addresses_that_come_after_the_attach_are_said_too() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    let service = Service { gateways: vec!["10.88.0.1/24".into()], ..Service::default() };
    let port = BridgePort { service, ..cluster.container(2, "web") };
    let plain = BridgePort { ips: Vec::new(), service: Service::default(), ..port.clone() };
    cluster.rig.attach(&plain).unwrap();
    eventually("the status is written", || devices(&cluster, "wire") != Value::Null);
    cluster.rig.ask(Request::Address { port }).unwrap();
    let said = || devices(&cluster, "wire")[0]["networkData"]["ips"] == json!(["10.88.0.2/24"]);
    eventually("the address is said", said);
}

#[test]
fn a_status_that_the_server_refuses_is_told_of_and_keeps_nobody_from_working() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", RATES);
    cluster.server.store().mood = Mood::Forbids;
    let port = cluster.container(2, "web");
    cluster.rig.attach(&port).unwrap();
    cluster
        .until_warned("a claim's status is not written: reading the claim: this node may not do that (403)");
    assert!(cluster.rig.status().healthy);
    cluster.server.store().mood = Mood::Well;
    eventually("the status is written", || devices(&cluster, "wire") != Value::Null);
    // One that is deleted has no status, and is no fault.
    cluster.server.store().objects.clear();
    cluster.restart();
    let is_told = || cluster.rig.status().warnings.iter().any(|warning| warning.contains("claim's status"));
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(!is_told());
}
