//! The dashboard's expressions: each finds the series that it is to show, however the agent is scraped.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::promtool::{promtool, test};
use crate::scrape::{SCRAPES, Scrape};

/// Two containers' series, of each metric that a panel tells containers apart by.
const SERIES: [(&str, &str); 10] = [
    (
        r#"shunt_allocation_bytes_per_second{uplink="eth1",network="n",container="c1",interface="eth0",direction="egress",namespace="team",pod="web"}"#,
        "10x60",
    ),
    (
        r#"shunt_allocation_bytes_per_second{uplink="eth1",network="n",container="c2",interface="eth0",direction="egress",namespace="team",pod="db"}"#,
        "20x60",
    ),
    (
        r#"shunt_port_bytes_total{network="n",container="c1",interface="eth0",host_interface="veth1",direction="from",namespace="team",pod="web"}"#,
        "0+600x60",
    ),
    (
        r#"shunt_port_bytes_total{network="n",container="c2",interface="eth0",host_interface="veth2",direction="from",namespace="team",pod="db"}"#,
        "0+1200x60",
    ),
    (
        r#"shunt_port_limit_bytes_per_second{network="n",container="c1",interface="eth0",host_interface="veth1",direction="from",namespace="team",pod="web"}"#,
        "100x60",
    ),
    (
        r#"shunt_port_limit_bytes_per_second{network="n",container="c2",interface="eth0",host_interface="veth2",direction="from",namespace="team",pod="db"}"#,
        "40x60",
    ),
    (
        r#"shunt_port_dropped_packets_total{network="n",container="c1",interface="eth0",host_interface="veth1",direction="from",namespace="team",pod="web"}"#,
        "0+60x60",
    ),
    (
        r#"shunt_port_dropped_packets_total{network="n",container="c2",interface="eth0",host_interface="veth2",direction="from",namespace="team",pod="db"}"#,
        "0+120x60",
    ),
    (
        r#"shunt_mapping_flows{network="n",container="c1",protocol="tcp",host_address="",host_port="80",namespace="team",pod="web"}"#,
        "3x60",
    ),
    (
        r#"shunt_mapping_flows{network="n",container="c2",protocol="tcp",host_address="",host_port="81",namespace="team",pod="db"}"#,
        "4x60",
    ),
];

/// By panel: what the two containers have.
const SHOWN: [(&str, f64, f64); 5] = [
    ("Largest allocations", 80.0, 160.0),
    ("Traffic by container", 80.0, 160.0),
    ("Share of the limit that is used", 0.1, 0.5),
    ("Packets dropped, by container", 1.0, 2.0),
    ("Translated connections", 3.0, 4.0),
];

/// The first expression of a panel, as Grafana asks it for all nodes.
fn expression(title: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/grafana.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let panel = panels.iter().find(|panel| panel["title"] == title).unwrap_or_else(|| panic!("{title}"));
    let text = panel["targets"][0]["expr"].as_str().unwrap();
    text.replace("$instance", ".*").replace("$__rate_interval", "5m")
}

fn shown(scrape: &Scrape) -> Value {
    let input = SERIES.map(|(series, values)| json!({ "series": scrape.series(series), "values": values }));
    let asked = SHOWN.map(|(title, first, second)| {
        let sample = |of: &str, value: f64| json!({ "labels": format!("{{of=\"{of}\"}}"), "value": value });
        json!({
            "expr": format!("sum by (of) ({})", expression(title)),
            "eval_time": "50m",
            "exp_samples": [sample("team/db", second), sample("team/web", first)],
        })
    });
    json!({ "name": scrape.name, "interval": "1m", "input_series": input, "promql_expr_test": asked })
}

#[test]
fn containers_are_told_apart_however_the_agent_is_scraped() {
    let Some(promtool) = promtool() else { return };
    test(&promtool, &SCRAPES.iter().map(shown).collect::<Vec<_>>());
}

#[test]
fn every_expression_of_the_dashboard_is_one() {
    let Some(promtool) = promtool() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/grafana.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter();
    let targets = targets.flat_map(|panel| panel["targets"].as_array().unwrap());
    let asked: Vec<_> = targets
        .map(|target| {
            let text = target["expr"].as_str().unwrap();
            let text = text.replace("$instance", "none").replace("$__rate_interval", "5m");
            json!({ "expr": text, "eval_time": "1m", "exp_samples": [] })
        })
        .collect();
    assert!(asked.len() > 20, "{}", asked.len());
    test(&promtool, &[json!({ "interval": "1m", "input_series": [], "promql_expr_test": asked })]);
}
