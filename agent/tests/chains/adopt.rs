//! `shunt-agent adopt`: running containers of a reference bridge come onto the fast path and go back, and their conversations notice nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use shunt_lab::{Binaries, Network, Protocol, Sandbox};

use crate::drop_in::text;
use crate::stage::{BRIDGE, Stage, listen};

fn reference(stage: &Stage) -> Network {
    stage.reference("bridge").with("bridge", json!(BRIDGE)).with("isDefaultGateway", json!(true)).with(
        "ipam",
        json!({ "type": "host-local", "dataDir": stage.node.leases(), "ranges": [[{ "subnet": "10.77.0.0/24" }]] }),
    )
}

/// Writes down what the runtime's libcni does.
fn remember(cache: &Path, sandbox: &Sandbox) {
    let results = cache.join("results");
    fs::create_dir_all(&results).unwrap();
    let remembered = json!({ "kind": "cniCacheV1", "containerId": sandbox.id(), "config": "e30=", "ifName": "eth0",
        "networkName": "pods", "result": sandbox.attachment().result });
    fs::write(results.join(format!("pods-{}-eth0", sandbox.id())), remembered.to_string()).unwrap();
}

fn adopt(stage: &Stage, cache: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(Binaries::find().unwrap().agent());
    command.arg("adopt").args(more).arg("--cache-dir").arg(cache);
    command.arg("--socket").arg(stage.node.agent().socket());
    stage.node.namespace().enter(|| command.output()).unwrap().unwrap()
}

#[test]
fn running_containers_of_a_reference_bridge_come_onto_the_fast_path_and_go_back() {
    let Some(stage) = Stage::set() else { return };
    let network = reference(&stage);
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let cache = stage.lab.directory("cache").unwrap();
    [&one, &two].into_iter().for_each(|sandbox| remember(&cache, sandbox));
    let echo = listen(&two);
    let mut talks = [Protocol::Tcp, Protocol::Udp].map(|protocol| one.talk_to(protocol, &echo).unwrap());
    let mut go_on = |when: &str| {
        for talk in &mut talks {
            talk.chat(20, 800).unwrap_or_else(|error| panic!("{when}: {error:#}"));
        }
    };
    go_on("before");
    let others = adopt(&stage, &cache, &["--bridge", "other0"]);
    assert!(others.status.success() && text(&others).contains("no container"), "{}", text(&others));

    let adopted = adopt(&stage, &cache, &["--bridge", BRIDGE]);
    assert!(adopted.status.success(), "{}\n{}", text(&adopted), stage.node.agent().log_tail());
    assert_eq!(stage.node.agent().status().unwrap().attachments, 2);
    go_on("on the fast path");
    drop(echo);
    stage.assert_talk(&one, &two);
    stage.assert_fast(&one, &two);

    let back = adopt(&stage, &cache, &["--back"]);
    assert!(back.status.success() && text(&back).contains("pods/one/eth0: given back"), "{}", text(&back));
    assert_eq!(stage.node.agent().status().unwrap().attachments, 0);
    stage.assert_talk(&one, &two);
    stage.remove(&network, &one);
    stage.remove(&network, &two);
    stage.assert_clean(&before);
}

#[test]
fn what_a_bridge_restricts_is_not_adopted_and_said() {
    let Some(stage) = Stage::set() else { return };
    let network = reference(&stage);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let cache = stage.lab.directory("cache").unwrap();
    [&one, &two].into_iter().for_each(|sandbox| remember(&cache, sandbox));
    let host = one.attachment().result["interfaces"][1]["name"].as_str().unwrap();
    stage.node.namespace().command("bridge", &["link", "set", "dev", host, "isolated", "on"]).unwrap();
    let adopted = adopt(&stage, &cache, &[]);
    assert_eq!(adopted.status.code(), Some(3), "{}", text(&adopted));
    for line in ["pods/one/eth0: left as it is", "pods/two/eth0: on the fast path"] {
        assert!(text(&adopted).contains(line), "{line} in {}", text(&adopted));
    }
}
