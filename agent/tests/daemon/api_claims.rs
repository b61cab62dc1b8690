//! Claims as an API server keeps them.

use std::net::IpAddr;

use k8s_openapi::api::resource::v1::AllocatedDeviceStatus;
use serde_json::{Value, json};
use shunt_agent::capacity::slice::DRIVER;

use crate::api_store::NODE;

/// Where a claim of the tests' namespace is.
pub(crate) fn path(name: &str) -> String {
    format!("/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/{name}")
}

/// A claim of a device, allocated: its UID is `uid-NAME`, the pod's `pod-POD`.
pub(crate) fn claim(name: &str, device: &str, pods: &[&str], rates: [&str; 2]) -> Value {
    let pod = |pod: &&str| json!({ "resource": "pods", "name": pod, "uid": format!("pod-{pod}") });
    let [egress, ingress] = rates;
    json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": { "namespace": "team", "name": name, "uid": format!("uid-{name}") },
        "spec": { "devices": { "requests": [
            { "name": "wire", "exactly": { "deviceClassName": DRIVER } },
        ] } },
        "status": {
            "allocation": { "devices": { "results": [{
                "driver": DRIVER, "pool": NODE, "device": device, "request": "wire", "shareID": "s-1",
                "consumedCapacity": { "egressBandwidth": egress, "ingressBandwidth": ingress },
            }] } },
            "reservedFor": pods.iter().map(pod).collect::<Vec<_>>(),
        },
    })
}

/// The devices of a claim's status, which the schema has and the API server's validation lets pass
/// (pkg/apis/resource/validation/validation.go).
pub(crate) fn check_devices(devices: &Value) -> Value {
    let typed: Vec<AllocatedDeviceStatus> = serde_json::from_value(devices.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), *devices, "strict decoding error");
    for device in &typed {
        let data = device.network_data.as_ref().unwrap();
        for ip in data.ips.iter().flatten() {
            let (address, length) = ip.split_once('/').unwrap();
            assert!(address.parse::<IpAddr>().is_ok() && length.parse::<u8>().is_ok(), "{ip}");
        }
    }
    devices.clone()
}
