//! What somebody does to a container's interface: the agent's `check` sees it as CNI's CHECK does.

use serde_json::json;
use shunt_agent_api::{AuditReport, Client, Reply, Request};

use crate::stage::Stage;

/// What `check` and CHECK find.
fn found(stage: &Stage) -> (Vec<String>, Option<String>) {
    let asked = Client::connect(stage.node.agent().socket()).unwrap().ask(Request::Audit);
    let Ok(Reply::Audited(AuditReport { findings, consistent, .. })) = asked else {
        panic!("no audit: {asked:?}")
    };
    assert_eq!(consistent, findings.is_empty(), "{findings:?}");
    let sandbox = &stage.sandboxes[0];
    let checked =
        stage.network.check(stage.node.namespace(), sandbox.container(), &sandbox.attachment().result);
    (findings, checked.err().map(|error| format!("{error:#}")))
}

#[test]
fn an_interface_that_is_renamed_down_or_in_another_namespace_is_found_by_check_and_by_the_agents() {
    let mut stage = Stage::empty();
    stage.add("one");
    let elsewhere = stage.lab.namespace("elsewhere").unwrap();
    let there = elsewhere.path().to_str().unwrap().to_owned();
    let ip = |line: &str| {
        stage.sandboxes[0].namespace().command("ip", &line.split(' ').collect::<Vec<_>>()).unwrap();
    };
    assert_eq!(found(&stage), (Vec::new(), None));
    for (change, words) in [
        ("link set eth0 down", "eth0 is down"),
        ("link set eth0 name other", "eth0 is called other now"),
        (&format!("link set other netns {there}"), "eth0 is not in "),
    ] {
        ip(change);
        let (findings, checked) = found(&stage);
        assert!(findings.iter().any(|finding| finding.contains(words)), "{change}: {findings:?}");
        assert!(findings.iter().all(|finding| finding.starts_with("pods/one/eth0: ")), "{findings:?}");
        assert!(checked.is_some(), "{change}");
        // It is the container's own doing: others are served.
        assert!(stage.node.agent().status().unwrap().healthy, "{change}");
    }
}

#[test]
fn a_bridge_that_is_not_promiscuous_any_more_is_found_by_check() {
    let mut stage = Stage::empty();
    stage.network = stage.network.clone().with("promiscMode", json!(true));
    stage.add("one");
    assert_eq!(found(&stage), (Vec::new(), None));
    let set =
        |state| stage.node.namespace().command("ip", &["link", "set", "cni0", "promisc", state]).unwrap();
    set("off");
    let (_, checked) = found(&stage);
    assert!(checked.is_some_and(|error| error.contains("`cni0` is not promiscuous")));
    set("on");
    assert_eq!(found(&stage), (Vec::new(), None));
}
