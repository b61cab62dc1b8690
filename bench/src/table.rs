//! Results on the screen.

use anyhow::Result;

use crate::comparison::{Comparison, Row};
use crate::ratio::Ratio;
use crate::results::Fact;
use crate::screen::{Paint, Screen, pad, right};

/// Columns of a contestant's name.
const NAME: usize = 40;

/// Shows a comparison, all rows to the first.
pub(crate) fn comparison(screen: &mut Screen, comparison: &Comparison) -> Result<()> {
    let Some(baseline) = comparison.baseline() else { return Ok(()) };
    let aside = format!(
        "{}, {}, {} rounds, ratios to {}",
        comparison.unit,
        comparison.setting,
        baseline.figures.len(),
        baseline.title
    );
    screen.heading(&comparison.title, &aside)?;
    for row in &comparison.rows {
        let figure = right(&format!("{:.1}", row.median), 8);
        let p99 = row.p99().map_or_else(String::new, |p99| format!("p99 {p99:.1}"));
        let ratio = comparison.ratio(row).map_or_else(String::new, shown);
        let line = format!("    {}{figure}  {}  {ratio}{}", pad(&row.title, NAME), pad(&p99, 10), share(row));
        screen.line(&line)?;
    }
    // Ours to every other one that is not the baseline.
    let Some(ours) = comparison.rows.iter().skip(1).find(|row| row.is_shunt()) else { return Ok(()) };
    for other in comparison.rows.iter().skip(1).filter(|row| !row.is_shunt()) {
        if let Some(ratio) = ours.ratios.get(&other.name).filter(|_| !other.name.ends_with("-again")) {
            screen.line(&format!(
                "    {}{}",
                pad(&format!("shunt to {}", other.title), NAME + 20),
                shown(ratio)
            ))?;
        }
    }
    Ok(())
}

/// Shows single figures.
pub(crate) fn facts(screen: &mut Screen, facts: &[Fact]) -> Result<()> {
    screen.heading("The agent and its programs", "")?;
    for fact in facts {
        let limit = fact.limit.map_or_else(String::new, |limit| format!("  (at most {limit})"));
        let figure = right(&format!("{:.1} {}", fact.value, fact.unit), 14);
        let line = format!("    {}{figure}{limit}", pad(&fact.title, NAME + 20));
        screen.line(&if fact.is_over() { Paint::Bad.on(&line) } else { line })?;
    }
    Ok(())
}

fn share(row: &Row) -> String {
    let Some(share) = row.fast_share else { return String::new() };
    let percent = format!("  {:.2}% fast", share * 100.0);
    if row.is_void() { Paint::Bad.on(&format!("{percent}: void")) } else { percent }
}

fn shown(ratio: &Ratio) -> String {
    let spread =
        format!("spread {:.3}–{:.3}, 95% {:.3}–{:.3}", ratio.low, ratio.high, ratio.lower95, ratio.upper95);
    format!("{:.3}×  {}", ratio.median, Paint::Dim.on(&spread))
}
