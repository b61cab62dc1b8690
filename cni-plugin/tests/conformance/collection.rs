//! GC leaves exactly what the runtime lists, in its own network.

use serde_json::{Value, json};

use crate::runtime::Runtime;

fn attached(runtime: &Runtime) -> Vec<String> {
    runtime.agent.with(|books| books.ports.keys().map(ToString::to_string).collect())
}

fn leases(runtime: &Runtime, network: &str) -> usize {
    let files = std::fs::read_dir(runtime.leases().join(network)).unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("10.")).count()
}

#[test]
fn gc_takes_what_is_not_listed_and_no_other_networks() {
    let runtime = Runtime::new();
    let _containers = ["c1", "c2", "c3"].map(|id| runtime.container(id));
    let (one, other) = (runtime.network("one"), {
        let mut other = runtime.network("other");
        other["ipam"]["ranges"] = json!([[{ "subnet": "10.77.0.0/24", "rangeStart": "10.77.0.100" }]]);
        other
    });
    for id in ["c1", "c2"] {
        runtime.call("ADD", id, &one).ok();
    }
    runtime.call("ADD", "c3", &other).ok();
    runtime.call("GC", "", &one).ok();
    assert_eq!(
        attached(&runtime),
        ["one/c1/eth0", "one/c2/eth0", "other/c3/eth0"],
        "no list: nothing is done"
    );
    let mut listed = one.clone();
    listed["cni.dev/valid-attachments"] = json!([{ "containerID": "c2", "ifname": "eth0" }]);
    assert_eq!(runtime.call("GC", "", &listed).ok(), Value::Null);
    assert_eq!(attached(&runtime), ["one/c2/eth0", "other/c3/eth0"]);
    let ports = runtime.node.command("ip", &["-brief", "link", "show", "master", "br0"]).unwrap();
    assert_eq!(ports.lines().count(), 2, "{ports}");
    assert_eq!((leases(&runtime, "one"), leases(&runtime, "other")), (1, 1));
    listed["cni.dev/valid-attachments"] = json!([]);
    runtime.call("GC", "", &listed).ok();
    assert_eq!(attached(&runtime), ["other/c3/eth0"], "an empty list is not an absent one");
}

#[test]
fn gc_does_without_the_agent_what_it_can() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    runtime.call("ADD", "c1", &network).ok();
    network["agentSocket"] = json!("/nonexistent/agent.sock");
    network["cni.dev/attachments"] = json!([]);
    runtime.call("GC", "", &network).ok();
    assert!(!runtime.inventory().has("link veth"));
    assert_eq!(leases(&runtime, "n1"), 0);
}

#[test]
fn a_list_of_twenty_thousand_attachments_is_collected_by() {
    let runtime = Runtime::new();
    let _containers = ["c1", "c2"].map(|id| runtime.container(id));
    let mut network = runtime.network("n1");
    for id in ["c1", "c2"] {
        runtime.call("ADD", id, &network).ok();
    }
    let listed =
        (0..20_000).map(|number| json!({ "containerID": format!("{number:064x}"), "ifname": "eth0" }));
    let mine = json!({ "containerID": "c2", "ifname": "eth0" });
    network["cni.dev/valid-attachments"] = listed.chain([mine]).collect();
    let begun = std::time::Instant::now();
    runtime.call("GC", "", &network).ok();
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(attached(&runtime), ["n1/c2/eth0"]);
    assert_eq!(leases(&runtime, "n1"), 1);
}

#[test]
fn gc_goes_on_past_a_failing_ipam_and_reports_it() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    runtime.call("ADD", "c1", &network).ok();
    network["ipam"] = json!({ "type": "no-such-ipam" });
    network["cni.dev/valid-attachments"] = json!([]);
    let (_, text) = runtime.call("GC", "", &network).error();
    assert!(text.contains("no-such-ipam"), "{text}");
    assert!(!runtime.inventory().has("link veth") && attached(&runtime).is_empty());
}
