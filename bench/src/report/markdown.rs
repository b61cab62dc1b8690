//! `report.md`.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use crate::comparison::{Better, Comparison};
use crate::results::{NotMeasured, Results};
use crate::targets::{self, Standing};

/// The report's text.
pub(super) fn report(results: &Results) -> String {
    let mut text = String::from("# shunt, measured\n\n");
    header(&mut text, results);
    text.push_str("![What everything costs](overview.svg)\n\n");
    text.push_str(
        "Ratios are medians of interleaved rounds, with the 95% interval of the median in brackets; a claim is the \
         interval's worse end. What is the same path measured again shows the noise.\n\n",
    );
    judged(&mut text, &results.comparisons);
    results.comparisons.iter().for_each(|comparison| table(&mut text, comparison));
    facts(&mut text, results);
    list(&mut text, "Left out", &results.left_out);
    list(&mut text, "Not measured", &results.not_measured);
    text
}

/// The targets, and why those are missed that are.
fn judged(text: &mut String, comparisons: &[Comparison]) {
    let judgements = targets::judge(comparisons);
    if judgements.is_empty() {
        return;
    }
    line(text, format_args!("## Targets\n\n| | asked | median | claim | |\n|---|---|---|---|---|"));
    for judgement in judgements {
        let standing = match judgement.standing {
            Standing::Met => "met".to_owned(),
            Standing::Median(why) => format!("**by the median only**: {why}"),
            Standing::Missed(why) => format!("**missed**: {why}"),
        };
        let (median, claim) = (judgement.median, judgement.claim);
        line(
            text,
            format_args!(
                "| {} | {} | {median:.3}× | {claim:.3}× | {standing} |",
                judgement.title, judgement.bound
            ),
        );
    }
    text.push('\n');
}

fn list(text: &mut String, title: &str, missing: &[NotMeasured]) {
    if missing.is_empty() {
        return;
    }
    line(text, format_args!("## {title}\n"));
    for NotMeasured { name, why } in missing {
        line(text, format_args!("- {name}: {why}"));
    }
    text.push('\n');
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    writeln!(text, "{arguments}").ok();
}

fn header(text: &mut String, results: &Results) {
    let header = &results.header;
    line(text, format_args!("| | |\n|---|---|"));
    line(text, format_args!("| command | `{}` |", header.command));
    let time = UNIX_EPOCH + Duration::from_secs(header.time);
    line(text, format_args!("| time | {} |", humantime::format_rfc3339_seconds(time)));
    line(text, format_args!("| kernel | {} |", header.kernel));
    line(text, format_args!("| processor | {}, {} CPUs |", header.processor, header.cpus));
    line(text, format_args!("| memory | {} MiB |", header.memory_kb / 1024));
    line(text, format_args!("| load at the beginning | {} |", header.load));
    line(text, format_args!("| shunt | {} |", header.version));
    line(text, format_args!("| compared with | {} |", header.reference));
    for (name, value) in &header.sysctls {
        line(text, format_args!("| {name} | {value} |"));
    }
    text.push('\n');
}

fn table(text: &mut String, comparison: &Comparison) {
    let Some(baseline) = comparison.baseline() else { return };
    let better = match comparison.better {
        Better::Less => "less is better",
        Better::More => "more is better",
    };
    line(text, format_args!("## {}\n\n![{}]({}.svg)\n", comparison.title, comparison.title, comparison.name));
    line(
        text,
        format_args!(
            "{}, {} rounds, {better}. Ratios to {}.\n",
            comparison.setting,
            baseline.figures.len(),
            baseline.title
        ),
    );
    line(text, format_args!("| | {} | p99, µs | ratio | 95% | spread | fast path |", comparison.unit));
    line(text, format_args!("|---|---|---|---|---|---|---|"));
    for row in &comparison.rows {
        let p99 = row.p99().map_or_else(String::new, |p99| format!("{p99:.1}"));
        let share = row.fast_share.map_or_else(String::new, |share| {
            format!("{:.2}%{}", share * 100.0, if row.is_void() { ", **void**" } else { "" })
        });
        let [ratio, interval, spread] = comparison.ratio(row).map_or_else(Default::default, |ratio| {
            [
                format!("**{:.3}×**", ratio.median),
                format!("{:.3}–{:.3}", ratio.lower95, ratio.upper95),
                format!("{:.3}–{:.3}", ratio.low, ratio.high),
            ]
        });
        line(
            text,
            format_args!(
                "| {} | {:.1} | {p99} | {ratio} | {interval} | {spread} | {share} |",
                row.title, row.median
            ),
        );
    }
    text.push('\n');
}

fn facts(text: &mut String, results: &Results) {
    if results.facts.is_empty() {
        return;
    }
    line(text, format_args!("## The agent and its programs\n\n| | | at most |\n|---|---|---|"));
    for fact in &results.facts {
        let limit = fact.limit.map_or_else(String::new, |limit| limit.to_string());
        let over = if fact.is_over() { " **over**" } else { "" };
        line(text, format_args!("| {} | {:.1} {}{over} | {limit} |", fact.title, fact.value, fact.unit));
    }
    text.push('\n');
}
