//! The dashboard's panels over what a working agent really serves: none is empty, and each legend has what it names.
//!
//! Two scrapes, a minute apart as far as Prometheus is told, are input of promtool's tests, so its own engine evaluates the panels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use shunt_lab::{Conversation, Lacking, Protocol, skip};

use crate::figures::{METRICS, scrape};
use crate::stage::Stage;

/// What a scrape adds.
const TARGET: &str = "job=\"shunt\",instance=\"192.0.2.1:9464\"";

const HOST_PORT: u16 = 8080;

/// A node with everything that a panel shows: uplinks, limits, host ports, and packets that are dropped.
fn stage() -> Stage {
    let mut stage = Stage::empty_by(&format!(
        "metrics = \"{METRICS}\"\n[uplinks.lo]\negress = 1000000000\ningress = 1000000000"
    ));
    let plain = stage.network.clone();
    stage.network = plain.clone().with("portIsolation", json!(true));
    stage.add("one");
    let limits = json!({ "ingressRate": 80_000_000, "ingressBurst": 800_000, "egressRate": 80_000_000,
        "egressBurst": 800_000 });
    let ports = ["tcp", "udp"]
        .map(|protocol| json!({ "hostPort": HOST_PORT, "containerPort": 7000, "protocol": protocol }));
    let asked = json!({ "bandwidth": limits, "portMappings": ports });
    stage.network = plain.clone().with("runtimeConfig", asked);
    stage.add("two");
    stage.network = plain.with("portIsolation", json!(true));
    stage.add("three");
    stage.node.settle().unwrap();
    stage
}

/// Everything of that is at work; the talk is the open connection to a host port.
fn work(stage: &Stage) -> Conversation {
    stage.assert_talk(0, 1);
    let isolated = &stage.sandboxes[2];
    let to = (isolated.addresses()[0], 7000).into();
    let socket = stage.sandboxes[0].namespace();
    // The neighbour is known, so that it is the program that drops.
    let mac = stage.node.agent().port("three").unwrap().mac;
    let own = isolated.addresses()[0].to_string();
    socket.command("ip", &["neigh", "replace", &own, "lladdr", &mac, "dev", "eth0"]).unwrap();
    let mut refused = Conversation::open(socket, Protocol::Udp, to).unwrap();
    assert!(refused.say(100).is_err(), "isolated containers do not talk");
    let served = stage.echo(1, 7000);
    let gateway = ([10, 77, 0, 1], HOST_PORT).into();
    let mut talk = Conversation::open(socket, Protocol::Tcp, gateway).unwrap();
    talk.chat(20, 1000).unwrap();
    drop(served);
    talk
}

/// The samples of a page, by series.
fn samples(page: &str) -> BTreeMap<String, String> {
    let lines = page.lines().filter(|line| line.starts_with("shunt_"));
    let of = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let own = labels.trim_end_matches('}');
        let separator = if own.is_empty() { "" } else { "," };
        Some((format!("{name}{{{own}{separator}{TARGET}}}"), value.to_owned()))
    };
    lines.filter_map(of).collect()
}

/// Both scrapes as promtool's series; `_` is a sample that is not there.
fn series(first: &str, second: &str) -> Vec<Value> {
    let (first, second) = (samples(first), samples(second));
    let value =
        |of: &BTreeMap<String, String>, series: &str| of.get(series).map_or("_", |value| value).to_owned();
    let all: BTreeSet<_> = first.keys().chain(second.keys()).collect();
    let both = |series: &String| format!("{} {}", value(&first, series), value(&second, series));
    all.into_iter().map(|series| json!({ "series": series, "values": both(series) })).collect()
}

/// What is asked of each expression: that there is something, that it is a number, and that all of it has each label of the legend.
fn asked(target: &Value) -> Vec<Value> {
    let text = target["expr"].as_str().unwrap();
    let text = text.replace("$instance", ".*").replace("$__rate_interval", "5m");
    let once = |expr: String| json!({ "expr": expr, "eval_time": "1m", "exp_samples": [{ "labels": "{}", "value": 1 }] });
    let legend = target["legendFormat"].as_str().unwrap_or_default();
    let labels = legend.split("{{").skip(1).filter_map(|part| Some(part.split_once("}}")?.0));
    let mut all = vec![once(format!("count(({text}) >= 0) > bool 0"))];
    all.extend(labels.map(|label| {
        let groups = format!("group by ({label}) ({text})");
        once(format!("count({groups} unless on ({label}) vector(0)) == bool count({groups})"))
    }));
    all
}

fn dashboard() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/grafana.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn no_panel_of_the_dashboard_is_empty_on_a_working_node_and_every_legend_is_whole() {
    let Some(promtool) = std::env::var_os("SHUNT_PROMTOOL").map(PathBuf::from) else {
        skip(Lacking::Package("prometheus (cargo xtask setup fetches promtool, SHUNT_PROMTOOL names it)"));
        return;
    };
    let stage = stage();
    // A reason's series begins with its first drop, and a rate needs two samples.
    drop(work(&stage));
    let first = scrape(&stage);
    let _talk = work(&stage);
    let second = scrape(&stage);
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let tests: Vec<_> = panels
        .iter()
        .map(|panel| {
            let targets = panel["targets"].as_array().unwrap().iter();
            json!({ "name": panel["title"], "interval": "1m", "input_series": series(&first, &second),
                "promql_expr_test": targets.flat_map(asked).collect::<Vec<_>>() })
        })
        .collect();
    assert!(tests.len() > 15);
    let file = stage.lab.root().join("panels.yaml");
    let content = json!({ "rule_files": [], "evaluation_interval": "1m", "tests": tests });
    std::fs::write(&file, content.to_string()).unwrap();
    let output = Command::new(promtool).args(["test", "rules"]).arg(&file).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}\n{second}", String::from_utf8_lossy(&said));
}

/// How a figure is written has to fit what it is.
#[test]
fn every_panels_unit_fits_what_its_expressions_give() {
    for panel in dashboard()["panels"].as_array().unwrap() {
        let (title, unit) = (&panel["title"], panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap());
        for target in panel["targets"].as_array().unwrap() {
            let text = target["expr"].as_str().unwrap();
            let is_ratio = text.contains(" / ") || text.contains("_ratio");
            let fitting = match text {
                _ if is_ratio => "percentunit",
                _ if text.contains("bytes") => "bps",
                _ if text.contains("rate(") && text.contains("packets") => "pps",
                _ if text.contains("rate(") => "cps",
                _ => "short",
            };
            assert_eq!(unit, fitting, "{title}: {text}");
            assert_eq!(text.contains("8 * "), fitting == "bps", "{title}: bits, not bytes: {text}");
        }
    }
}
