//! `--compare OLD NEW`: what got better or worse between two runs, beyond the noise.
//!
//! Two runs are two machines, or one in two moods: absolute figures of one say nothing about the other's. Ratios to the
//! baseline of the same run do. A ratio has changed when the two runs' 95% intervals have no value in common. A single figure
//! has no interval: it has changed when one run keeps what is asked of it and the other does not.

use anyhow::Result;

use crate::comparison::{Better, Comparison};
use crate::ratio::Ratio;
use crate::results::{Fact, Results};
use crate::screen::{Paint, Screen, pad};

/// What became of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Better,
    Worse,
    WithinTheNoise,
}

/// Shows every ratio that both runs have, and which figures only one of them has.
pub(crate) fn show(screen: &mut Screen, old: &Results, new: &Results) -> Result<()> {
    screen.heading(
        "What changed",
        "ratios to each run's own baseline; changed is what the 95% intervals set apart",
    )?;
    let mut worse = 0;
    for after in &new.comparisons {
        let Some(before) = old.comparisons.iter().find(|before| before.name == after.name) else {
            screen.line(&format!("    {}only in the new run", pad(&after.title, 44)))?;
            continue;
        };
        for (title, was, is, change) in changes(before, after) {
            let text = format!(
                "    {}{:.3}× → {:.3}×  {}",
                pad(&format!("{}: {title}", after.title), 60),
                was.median,
                is.median,
                word(change)
            );
            worse += usize::from(change == Change::Worse);
            screen.line(&painted(text, change))?;
        }
    }
    for before in &old.comparisons {
        if !new.comparisons.iter().any(|after| after.name == before.name) {
            screen.line(&format!("    {}only in the old run", pad(&before.title, 44)))?;
        }
    }
    worse += show_facts(screen, old, new)?;
    screen.line(&format!("\n    {worse} worse"))
}

/// Shows every single figure of which something is asked, and that both runs have; how many got worse.
fn show_facts(screen: &mut Screen, old: &Results, new: &Results) -> Result<usize> {
    let mut worse = 0;
    for is in new.facts.iter().filter(|fact| fact.limit.is_some()) {
        let Some(was) = old.facts.iter().find(|was| was.name == is.name) else { continue };
        let change = kept(was, is);
        let figures = format!("{:.2} → {:.2} {}", was.value, is.value, is.unit);
        let said = match change {
            Change::Better => "kept again",
            Change::Worse => "kept no longer",
            Change::WithinTheNoise => "as before",
        };
        let text = format!("    {}{figures}  {said}", pad(&is.title, 60));
        worse += usize::from(change == Change::Worse);
        screen.line(&painted(text, change))?;
    }
    Ok(worse)
}

/// By what is asked now.
fn kept(was: &Fact, is: &Fact) -> Change {
    match (Fact { limit: is.limit, ..was.clone() }.is_over(), is.is_over()) {
        (false, true) => Change::Worse,
        (true, false) => Change::Better,
        _ => Change::WithinTheNoise,
    }
}

fn painted(text: String, change: Change) -> String {
    match change {
        Change::Better => Paint::Good.on(&text),
        Change::Worse => Paint::Bad.on(&text),
        Change::WithinTheNoise => text,
    }
}

fn changes<'a>(
    before: &'a Comparison,
    after: &'a Comparison,
) -> impl Iterator<Item = (&'a str, &'a Ratio, &'a Ratio, Change)> {
    after.rows.iter().filter_map(|row| {
        let is = after.ratio(row)?;
        let was = before.ratio(before.row(&row.name)?)?;
        Some((row.title.as_str(), was, is, changed(after.better, was, is)))
    })
}

fn changed(better: Better, was: &Ratio, is: &Ratio) -> Change {
    let (less, more) = (is.upper95 < was.lower95, is.lower95 > was.upper95);
    match (better, less, more) {
        (_, false, false) => Change::WithinTheNoise,
        (Better::Less, true, _) | (Better::More, _, true) => Change::Better,
        _ => Change::Worse,
    }
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Better => "better",
        Change::Worse => "worse",
        Change::WithinTheNoise => "within the noise",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(lower95: f64, median: f64, upper95: f64) -> Ratio {
        Ratio { median, low: lower95, high: upper95, lower95, upper95, rounds: 30 }
    }

    #[test]
    fn only_intervals_without_a_common_value_are_a_change() {
        let was = ratio(1.0, 1.05, 1.1);
        assert_eq!(changed(Better::Less, &was, &ratio(1.08, 1.15, 1.2)), Change::WithinTheNoise);
        assert_eq!(changed(Better::Less, &was, &ratio(1.11, 1.15, 1.2)), Change::Worse);
        assert_eq!(changed(Better::Less, &was, &ratio(0.8, 0.9, 0.99)), Change::Better);
        assert_eq!(changed(Better::More, &was, &ratio(1.11, 1.15, 1.2)), Change::Better);
        assert_eq!(changed(Better::More, &was, &ratio(0.8, 0.9, 0.99)), Change::Worse);
    }

    #[test]
    fn a_single_figure_gets_worse_when_it_becomes_more_than_is_asked() {
        let fact = |value, limit| Fact {
            name: "agent-idle".to_owned(),
            title: String::new(),
            value,
            unit: "%".to_owned(),
            limit,
        };
        assert_eq!(kept(&fact(0.1, Some(0.2)), &fact(0.19, Some(0.2))), Change::WithinTheNoise);
        assert_eq!(kept(&fact(0.1, Some(0.2)), &fact(0.3, Some(0.2))), Change::Worse);
        assert_eq!(kept(&fact(0.3, Some(0.2)), &fact(0.1, Some(0.2))), Change::Better);
        assert_eq!(kept(&fact(0.3, Some(0.2)), &fact(0.4, Some(0.2))), Change::WithinTheNoise);
        assert_eq!(kept(&fact(0.3, None), &fact(0.3, Some(0.2))), Change::WithinTheNoise);
    }
}
