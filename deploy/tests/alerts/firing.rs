//! Each alert fires when it is to, once, and not when it is not to.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::cases::{CASES, Series};
use crate::promtool::{promtool, rules, run, test};
use crate::scrape::{SCRAPES, Scrape};

/// How many of an alert fire at an instance after an hour.
fn fired(name: &str, scrape: &Scrape, series: Series, alert: &str, times: u32) -> Value {
    let input =
        series.iter().map(|(series, values)| json!({ "series": scrape.series(series), "values": values }));
    let firing = format!(
        "count by (instance) (ALERTS{{alertname=\"{alert}\",alertstate=\"firing\",severity=~\"critical|warning\"}})"
    );
    let labels = format!("{{instance=\"{}\"}}", scrape.instance);
    let samples = if times == 0 { json!([]) } else { json!([{ "labels": labels, "value": times }]) };
    json!({
        "name": name,
        "interval": "1m",
        "input_series": input.collect::<Vec<_>>(),
        "promql_expr_test": [{ "expr": firing, "eval_time": "59m", "exp_samples": samples }],
    })
}

#[test]
fn each_alert_fires_once_however_the_agent_is_scraped() {
    let Some(promtool) = promtool() else { return };
    let each = CASES.iter().flat_map(|case| SCRAPES.iter().map(move |scrape| (case, scrape)));
    let tests: Vec<_> = each
        .map(|(case, scrape)| {
            let name = format!("{}, {}", case.alert, scrape.name);
            fired(&name, scrape, case.fires, case.alert, 1)
        })
        .collect();
    test(&promtool, &tests);
}

#[test]
fn no_alert_fires_below_its_threshold_or_for_another_reason() {
    let Some(promtool) = promtool() else { return };
    let mut tests = Vec::new();
    for case in &CASES {
        for (n, series) in case.silent.iter().enumerate() {
            for scrape in &SCRAPES {
                let name = format!("{} is silent ({n}), {}", case.alert, scrape.name);
                tests.push(fired(&name, scrape, series, case.alert, 0));
            }
        }
    }
    test(&promtool, &tests);
}

#[test]
fn an_agent_that_never_answered_is_known_by_its_job_and_no_other_target_is() {
    let Some(promtool) = promtool() else { return };
    let down: Series = &[("up", "0x60")];
    let of = |scrape: &Scrape| u32::from(scrape.job.ends_with("shunt"));
    let tests = SCRAPES.iter().map(|scrape| fired(scrape.name, scrape, down, "ShuntAgentDown", of(scrape)));
    test(&promtool, &tests.collect::<Vec<_>>());
}

#[test]
fn promtool_finds_nothing_wrong_and_every_alert_has_a_case() {
    let Some(promtool) = promtool() else { return };
    let (passed, said) = run(&promtool, &["check", "rules", rules().to_str().unwrap()]);
    assert!(passed, "{said}");
    let rules: Value = serde_saphyr::from_str(&fs::read_to_string(rules()).unwrap()).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    let named: BTreeSet<_> = rules.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(named, CASES.iter().map(|case| case.alert).collect());
}
