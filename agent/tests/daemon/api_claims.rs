//! Claims as an API server keeps them.

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
