//! `shunt-agent adopt`: running containers of a reference bridge come onto the fast path and go back, and their conversations notice nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Binaries, Network, Protocol, Sandbox, patience};

use crate::drop_in::text;
use crate::stage::{BRIDGE, Stage, listen};

fn reference(stage: &Stage) -> Network {
    stage.reference("bridge").with("bridge", json!(BRIDGE)).with("isDefaultGateway", json!(true)).with(
        "ipam",
        json!({ "type": "host-local", "dataDir": stage.node.leases(), "ranges": [[{ "subnet": "10.77.0.0/24" }]] }),
    )
}

/// Writes down what the runtime's libcni does.
pub(crate) fn remember(cache: &Path, network: &Network, sandbox: &Sandbox) {
    let results = cache.join("results");
    fs::create_dir_all(&results).unwrap();
    let remembered = json!({ "kind": "cniCacheV1", "containerId": sandbox.id(), "config": "e30=", "ifName": "eth0",
        "networkName": network.name(), "result": sandbox.attachment().result });
    let file = format!("{}-{}-eth0", network.name(), sandbox.id());
    fs::write(results.join(file), remembered.to_string()).unwrap();
}

pub(crate) fn adopt(stage: &Stage, cache: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(Binaries::find().unwrap().agent());
    command.arg("adopt").args(more).arg("--cache-dir").arg(cache);
    command.arg("--socket").arg(stage.node.agent().socket());
    stage.node.namespace().enter(|| command.output()).unwrap().unwrap()
}

fn until(stage: &Stage, what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < patience(Duration::from_secs(5)),
            "{what}: {}",
            stage.node.agent().log_tail()
        );
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn running_containers_of_a_reference_bridge_come_onto_the_fast_path_and_go_back() {
    let Some(stage) = Stage::set() else { return };
    let network = reference(&stage);
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let cache = stage.lab.directory("cache").unwrap();
    [&one, &two].into_iter().for_each(|sandbox| remember(&cache, &network, sandbox));
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

    let back = adopt(&stage, &cache, &["--back", "--json"]);
    assert!(back.status.success(), "{}", text(&back));
    let said: Value = serde_json::from_slice(&back.stdout).unwrap();
    assert_eq!((&said["back"], said["done"].as_array().map(Vec::len)), (&json!(true), Some(2)), "{said}");
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
    [&one, &two].into_iter().for_each(|sandbox| remember(&cache, &network, sandbox));
    let host = one.attachment().result["interfaces"][1]["name"].as_str().unwrap();
    stage.node.namespace().command("bridge", &["link", "set", "dev", host, "isolated", "on"]).unwrap();
    let adopted = adopt(&stage, &cache, &[]);
    assert_eq!(adopted.status.code(), Some(3), "{}", text(&adopted));
    for line in ["pods/one/eth0: left as it is", "pods/two/eth0: on the fast path"] {
        assert!(text(&adopted).contains(line), "{line} in {}", text(&adopted));
    }
}

#[test]
fn where_others_have_rules_containers_are_adopted_only_if_the_agent_heeds_them() {
    for filters in ["bypass", "auto"] {
        let Some(stage) = Stage::set_by(&format!("filters = \"{filters}\"")) else { return };
        let network = reference(&stage);
        let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
        let cache = stage.lab.directory("cache").unwrap();
        [&one, &two].into_iter().for_each(|sandbox| remember(&cache, &network, sandbox));
        let node = stage.node.namespace();
        node.sysctl("net/bridge/bridge-nf-call-iptables", "1").unwrap();
        node.command("iptables", &["-A", "FORWARD", "-p", "udp", "--dport", "7001", "-j", "DROP"]).unwrap();
        let adopted = adopt(&stage, &cache, &[]);
        let is_left = filters == "bypass";
        assert_eq!(adopted.status.code(), Some(if is_left { 3 } else { 0 }), "{}", text(&adopted));
        assert_eq!(text(&adopted).contains("set filters = \"auto\""), is_left, "{}", text(&adopted));
        assert_eq!(stage.node.agent().status().unwrap().attachments, if is_left { 0 } else { 2 });
        stage.assert_talk(&one, &two);
        let echo = two.echo(two.addresses()[0], 7001).unwrap();
        until(&stage, "rules are heeded", || {
            stage.node.agent().ports().unwrap().iter().all(|port| !port.kernels_way.is_empty())
        });
        let mut refused = one.talk_to(Protocol::Udp, &echo).unwrap();
        assert!(refused.say(100).is_err(), "{filters}: what the rules refuse");
    }
}
