//! The Prometheus operator's objects, which the chart has where they are asked for.

use std::fs;

use serde_json::{Value, json};

use crate::kept::{checkout, object, objects};
use crate::rendered::chart;

const SCRAPED: [&str; 4] = [
    "--set",
    "monitoring.podMonitor=true,monitoring.labels.release=main",
    "--set",
    "agent.config.metrics=0.0.0.0:9100",
];

#[test]
fn the_pod_monitor_finds_the_agents_port_and_takes_the_targets_own_names_off() {
    let Some(chart) = chart() else { return };
    let rendered = chart.render(&SCRAPED).unwrap();
    let monitor = object(&rendered, "PodMonitor", "shunt");
    assert_eq!(monitor["metadata"]["labels"]["release"], "main");
    let set = object(&rendered, "DaemonSet", "shunt");
    let pod = &set["spec"]["template"];
    assert_eq!(pod["spec"]["containers"][0]["ports"], json!([{ "name": "metrics", "containerPort": 9100 }]));
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["port"], "metrics");
    let wanted = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(wanted.iter().all(|(name, value)| pod["metadata"]["labels"][name] == *value), "{wanted:?}");
    assert_eq!(
        endpoint["relabelings"][0],
        json!({ "action": "labeldrop", "regex": "namespace|pod|container" })
    );
}

#[test]
fn the_prometheus_rule_has_the_rules_as_they_are() {
    let Some(chart) = chart() else { return };
    let rendered = chart.render(&["--set", "monitoring.alerts=true"]).unwrap();
    let rules = fs::read_to_string(checkout().join("deploy/helm/shunt/alerts.yaml")).unwrap();
    let rules: Value = serde_saphyr::from_str(&rules).unwrap();
    assert_eq!(object(&rendered, "PrometheusRule", "shunt")["spec"], rules);
}

#[test]
fn without_an_address_of_metrics_a_pod_monitor_is_refused_and_nothing_is_monitored_unasked() {
    let Some(chart) = chart() else { return };
    let error = chart.render(&SCRAPED[..2]).unwrap_err().to_string();
    assert!(error.contains("set agent.config.metrics"), "{error}");
    for arguments in [&[][..], &["--set", "uninstall=true", "--set", "monitoring.alerts=true"]] {
        let rendered = chart.render(arguments).unwrap();
        let is_monitoring = |object: &Value| object["apiVersion"] == "monitoring.coreos.com/v1";
        assert!(!objects(&rendered).iter().any(is_monitoring));
    }
}
