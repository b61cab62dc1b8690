//! Many at once.

use std::collections::BTreeSet;
use std::thread;

use crate::runtime::Runtime;

#[test]
fn fifty_adds_and_fifty_dels_at_once_leave_exactly_nothing() {
    let runtime = Runtime::new();
    let before = runtime.inventory();
    let ids: Vec<String> = (0..50).map(|number| format!("c{number}")).collect();
    let _containers: Vec<_> = ids.iter().map(|id| runtime.container(id)).collect();
    let network = runtime.network("n1");
    let addresses: BTreeSet<String> = thread::scope(|scope| {
        let calls: Vec<_> = ids
            .iter()
            .map(|id| scope.spawn(|| runtime.call("ADD", id, &network).ok()["ips"].to_string()))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(addresses.len(), 50, "no address twice");
    thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| runtime.call("DEL", id, &network).ok());
        }
    });
    runtime.call("DEINIT", "", &network).ok();
    runtime.assert_nothing_new(&before);
}

#[test]
fn failing_adds_beside_each_other_leave_no_bridge() {
    let runtime = Runtime::new();
    let before = runtime.inventory();
    runtime.agent.with(|books| books.refuse_attach = Some(shunt_agent_api::ErrorKind::Kernel));
    let ids: Vec<String> = (0..20).map(|number| format!("c{number}")).collect();
    let _containers: Vec<_> = ids.iter().map(|id| runtime.container(id)).collect();
    let network = runtime.network("n1");
    thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| runtime.call("ADD", id, &network).error());
        }
    });
    runtime.assert_nothing_new(&before);
}
