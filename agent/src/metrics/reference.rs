//! The manual's table of metrics, from the page that is served.

use std::collections::BTreeMap;

use super::exposition::tests::full;
use super::text;
use crate::documented::{assert_current, row};

/// What the page says of a metric.
#[derive(Default)]
struct Metric<'a> {
    kind: &'a str,
    help: &'a str,
    /// As the page has them, without repetition.
    labels: Vec<&'a str>,
}

/// The names of a sample's labels. A quote in a value has a backslash before it.
fn labels(sample: &str) -> Vec<&str> {
    let Some((_, labels)) = sample.split_once('{') else { return Vec::new() };
    let mut names = Vec::new();
    let mut rest = labels;
    while let Some((name, value)) = rest.split_once("=\"") {
        names.push(name.trim_start_matches(','));
        let is_escaped =
            |at: usize| value[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
        let end = value.match_indices('"').map(|(at, _)| at).find(|at| !is_escaped(*at)).unwrap();
        rest = &value[end + 1..];
    }
    names
}

/// The metrics of a page by the names that are asked for.
fn metrics(page: &str) -> BTreeMap<&str, Metric<'_>> {
    let mut found: BTreeMap<&str, Metric<'_>> = BTreeMap::new();
    let (mut help, mut kind) = ("", "");
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ').unwrap().1;
        } else if let Some(described) = line.strip_prefix("# TYPE ") {
            kind = described.split_once(' ').unwrap().1;
        } else if !line.starts_with('#') {
            let metric = found.entry(line.split(['{', ' ']).next().unwrap()).or_default();
            (metric.kind, metric.help) = (kind, help);
            let more: Vec<_> =
                labels(line).into_iter().filter(|name| !metric.labels.contains(name)).collect();
            metric.labels.extend(more);
        }
    }
    found
}

fn written() -> String {
    let page = text(&full()).unwrap();
    let mut table = row(["metric", "type", "labels", "says"]) + "|---|---|---|---|\n";
    for (name, Metric { kind, help, labels }) in metrics(&page) {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        table += &row([&format!("`{name}`"), kind, &labels.join(", "), help]);
    }
    table
}

#[test]
fn the_manuals_table_of_metrics_is_what_is_served() {
    assert_current("metrics", &written());
}

#[test]
fn every_metric_of_the_page_has_a_type_and_a_help_that_ends_once() {
    let page = text(&full()).unwrap();
    for (name, Metric { kind, help, .. }) in metrics(&page) {
        assert!(["counter", "gauge", "info"].contains(&kind), "{name}: {kind}");
        assert!(help.ends_with('.') && !help.ends_with(".."), "{name}: {help}");
    }
}

#[test]
fn quotes_and_commas_in_a_value_hide_no_label() {
    assert_eq!(labels(r#"a{b="x\",c=\"y\\",d="z"} 1"#), ["b", "d"]);
    assert_eq!(labels("a 1"), [""; 0]);
}
