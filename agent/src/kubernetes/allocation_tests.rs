//! Claims as an API server may say them.

use serde_json::{Value, json};

use super::*;

fn claim() -> Value {
    json!({
        "metadata": { "namespace": "team", "name": "wire", "uid": "u-1" },
        "spec": {},
        "status": {
            "allocation": { "devices": { "results": [
                { "driver": "gpu.example.com", "pool": "elsewhere", "device": "gpu-0", "request": "gpu" },
                { "driver": DRIVER, "pool": "node-1", "device": "eth1", "request": "wire", "shareID": "s-1",
                  "consumedCapacity": { "egressBandwidth": "100M", "ingressBandwidth": "1953125Ki" } },
            ] } },
            "reservedFor": [{ "resource": "pods", "name": "web-0", "uid": "p-1" }],
        },
    })
}

fn outcome(claim: Value) -> Result<Claim, AllocationError> {
    let asked = ClaimName { namespace: "team".into(), name: "wire".into(), uid: "u-1".into() };
    read(&serde_json::from_value(claim).unwrap(), &asked, "node-1")
}

#[test]
fn a_claim_is_what_its_drivers_device_consumes_in_any_notation() {
    let claim = outcome(claim()).unwrap();
    assert_eq!((claim.pod.name.as_str(), claim.pod.uid.as_str()), ("web-0", "p-1"));
    let [share] = claim.shares.as_slice() else { panic!("{claim:?}") };
    assert_eq!((share.egress, share.ingress), (100_000_000, 2_000_000_000));
    assert_eq!((share.request.as_str(), share.share_id.as_deref()), ("wire", Some("s-1")));
}

#[test]
fn a_claim_that_cannot_be_had_is_refused_by_what_is_wrong_with_it() {
    type Spoil = fn(&mut Value);
    fn ours(claim: &mut Value) -> &mut Value {
        &mut claim["status"]["allocation"]["devices"]["results"][1]
    }
    let cases: [(&str, Spoil); 12] = [
        ("another UID, u-2", |claim| claim["metadata"]["uid"] = json!("u-2")),
        ("not allocated", |claim| claim["status"]["allocation"] = Value::Null),
        ("not allocated", |claim| claim["status"] = Value::Null),
        ("other drivers only", |claim| ours(claim)["driver"] = json!("net.example.com")),
        ("reserved for no pod", |claim| claim["status"]["reservedFor"] = json!([])),
        ("jobs j, which is no pod", |claim| {
            claim["status"]["reservedFor"] =
                json!([{ "resource": "jobs", "apiGroup": "batch", "name": "j", "uid": "j-1" }]);
        }),
        ("2 pods share it (a, b)", |claim| {
            let pod = |name: &str| json!({ "resource": "pods", "name": name, "uid": name });
            claim["status"]["reservedFor"] = json!([pod("a"), pod("b")]);
        }),
        ("pool node-2, which is not this node's", |claim| ours(claim)["pool"] = json!("node-2")),
        ("no consumedCapacity of egressBandwidth", |claim| ours(claim)["consumedCapacity"] = Value::Null),
        ("is negative", |claim| ours(claim)["consumedCapacity"]["egressBandwidth"] = json!("-1M")),
        ("is larger", |claim| ours(claim)["consumedCapacity"]["ingressBandwidth"] = json!("99E")),
        ("is 0", |claim| ours(claim)["consumedCapacity"]["ingressBandwidth"] = json!("0")),
    ];
    for (fault, spoil) in cases {
        let mut spoiled = claim();
        spoil(&mut spoiled);
        let error = outcome(spoiled).unwrap_err().to_string();
        assert!(error.contains(fault), "{fault}: {error}");
    }
}
