//! The dashboard and the alert rules, held to what is served: each metric, label and drop reason that they name exists, and each cure is
//! documented.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use shunt_dataplane::DropReason;

use super::exposition::tests::{full, names};
use super::text;

const DASHBOARD: &str = include_str!("../../../dashboards/grafana.json");
const ALERTS: &str = include_str!("../../../deploy/helm/shunt/alerts.yaml");
const CURES: &str = include_str!("../../../docs/alerts.md");

/// What Prometheus and Kubernetes give a target, and so take from a metric unless `honorLabels` is set.
const TARGETS_LABELS: [&str; 6] = ["namespace", "pod", "container", "endpoint", "node", "service"];

/// What kube-state-metrics tells of a DaemonSet.
const OF_DAEMON_SETS: [&str; 2] =
    ["kube_daemonset_status_desired_number_scheduled", "kube_daemonset_status_number_available"];

#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    alert: String,
    expr: String,
    labels: Value,
    annotations: Value,
}

fn rules() -> Vec<Rule> {
    let rules: Rules = serde_saphyr::from_str(ALERTS).unwrap();
    rules.groups.into_iter().flat_map(|group| group.rules).collect()
}

fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn assert_known(of: &str, expression: &str) {
    let page = text(&full()).unwrap();
    let known = names(&page);
    let is_metric = |word: &&str| word.starts_with("shunt_") || word.starts_with("kube_");
    let used: Vec<_> = words(expression).filter(is_metric).collect();
    assert!(!used.is_empty(), "{of}: {expression}");
    for name in used {
        assert!(known.contains(name) || OF_DAEMON_SETS.contains(&name), "{of}: there is no {name}");
    }
}

/// Every expression of a dashboard's panels, with the panel's title.
fn expressions(panels: &Value, found: &mut Vec<(String, String)>) {
    for panel in panels.as_array().into_iter().flatten() {
        let title = panel["title"].as_str().unwrap_or_default();
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((title.to_owned(), target["expr"].as_str().unwrap().to_owned()));
        }
        expressions(&panel["panels"], found);
    }
}

#[test]
fn every_metric_that_the_dashboard_names_is_on_the_page() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut found = Vec::new();
    expressions(&dashboard["panels"], &mut found);
    assert!(found.len() >= 8, "{found:?}");
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    found.extend(
        variables
            .filter_map(|variable| Some(("variable".into(), variable["query"]["query"].as_str()?.into()))),
    );
    for (title, expression) in found {
        assert_known(&title, &expression);
    }
}

#[test]
fn every_metric_and_reason_that_a_rule_names_exists() {
    let reasons: BTreeSet<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
    for Rule { alert, expr, .. } in rules() {
        assert_known(&alert, &expr);
        let Some((_, named)) = expr.split_once("reason=~\"") else { continue };
        for reason in named.split('"').next().unwrap().split('|') {
            assert!(reasons.contains(reason), "{alert}: there is no reason {reason}");
        }
    }
}

#[test]
fn a_rule_needs_no_label_that_a_target_takes() {
    for Rule { alert, expr, .. } in rules() {
        let taken: Vec<_> = words(&expr).filter(|word| TARGETS_LABELS.contains(word)).collect();
        assert!(taken.is_empty(), "{alert}: {taken:?}");
    }
}

#[test]
fn every_alert_says_what_is_wrong_and_has_a_cure() {
    let rules = rules();
    for Rule { alert, labels, annotations, .. } in &rules {
        assert!(["critical", "warning"].contains(&labels["severity"].as_str().unwrap()), "{alert}");
        for key in ["summary", "description"] {
            assert!(annotations[key].as_str().is_some_and(|text| text.len() > 30), "{alert}: {key}");
        }
        let anchor = format!("docs/alerts.md#{}", alert.to_ascii_lowercase());
        assert_eq!(annotations["runbook"], anchor, "{alert}");
        let (_, section) = CURES.split_once(&format!("\n## {alert}\n")).unwrap_or_else(|| panic!("{alert}"));
        let section = section.split("\n## ").next().unwrap();
        assert!(section.contains("\nCure"), "{alert}: {section}");
    }
    assert_eq!(CURES.matches("\n## ").count(), rules.len(), "a cure without an alert");
}
