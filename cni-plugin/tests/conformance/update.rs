//! A repeated ADD: refused, or an update in place.

use serde_json::json;

use crate::runtime::Runtime;

#[test]
fn a_repeated_add_fails_and_harms_nothing() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    let result = runtime.call("ADD", "c1", &network).ok();
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 106 && text.contains("n1/c1/eth0"), "{text}");
    network["prevResult"] = result;
    runtime.call("CHECK", "c1", &network).ok();
}

#[test]
fn a_repeated_add_that_may_update_gives_the_same_result() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["updateExisting"] = json!(true);
    network["ipam"]["routes"] = json!([{ "dst": "192.0.2.0/24", "gw": "10.77.0.1", "mtu": 1300 }]);
    let mut first = runtime.call("ADD", "c1", &network).ok();
    let mut second = runtime.call("ADD", "c1", &network).ok();
    for result in [&mut first, &mut second] {
        result["routes"].as_array_mut().unwrap().sort_by_key(ToString::to_string);
    }
    assert_eq!(first, second);
    network["bridge"] = json!("br1");
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 106 && text.contains("another bridge"), "{text}");
}
