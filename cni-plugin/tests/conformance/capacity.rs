//! CAPACITY, and an ADD for which there is none.

use serde_json::json;
use shunt_agent_api::{Allocation, CapacityReport, ErrorKind, PoolReport, SlotsReport, UplinkReport};

use crate::runtime::Runtime;

fn report() -> CapacityReport {
    let pool = PoolReport { total: 9_000, reserved: 1_000, allocated: 4_000, free: 5_000 };
    let allocation = Allocation {
        network: "n1".into(),
        container: "c1".into(),
        ifname: "eth0".into(),
        egress: 4_000,
        ingress: 4_000,
        claimed: false,
    };
    let uplink = UplinkReport {
        name: "eth1".into(),
        speed: 10_000,
        egress: pool,
        ingress: pool,
        slots: SlotsReport { total: 100, free: 98 },
        allocations: vec![allocation],
        unknown: None,
        carried: None,
    };
    CapacityReport { uplinks: vec![uplink] }
}

#[test]
fn capacity_prints_the_agents_books_whatever_the_plugin_stands_in_for() {
    let runtime = Runtime::new();
    runtime.agent.with(|books| books.capacity = report());
    let pool = json!({ "total": 9000, "reserved": 1000, "allocated": 4000, "free": 5000 });
    let expected = json!({ "uplinks": [{
        "name": "eth1", "speed": 10000, "egress": pool, "ingress": pool,
        "slots": { "total": 100, "free": 98 },
        "allocations": [
            { "network": "n1", "container": "c1", "ifname": "eth0", "egress": 4000, "ingress": 4000 }
        ],
    }] });
    for kind in ["shunt", "shunt-bandwidth"] {
        let mut network = runtime.network("n1");
        network["type"] = json!(kind);
        assert_eq!(runtime.call("CAPACITY", "", &network).ok(), expected, "{kind}");
    }
}

#[test]
fn an_add_that_exceeds_the_capacity_leaves_nothing_behind() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let network = runtime.network("n1");
    let before = runtime.inventory();
    runtime.agent.with(|books| books.refuse_attach = Some(ErrorKind::Capacity));
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 101 && text.contains("told to refuse"), "{text}");
    runtime.assert_nothing_new(&before);
    runtime.agent.with(|books| books.refuse_attach = None);
    runtime.call("ADD", "c1", &network).ok();
}
