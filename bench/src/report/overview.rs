//! The one picture: what everything costs, next to what it is compared to. Rates are turned into costs, so that shorter
//! is better everywhere.

use std::path::Path;

use anyhow::Result;
use plotters::style::Color;

use super::chart::{Align, Chart, FAINT, INK, LEFT, RIGHT, color, place};
use crate::comparison::{Better, Comparison, Row};

const HEAD: i32 = 64;
const TITLE: i32 = 26;
const ROW: i32 = 22;
const GAP: i32 = 14;

/// A bar that would be longer is cut, and its figure says how long it would be.
const LONGEST: f64 = 2.0;

/// Draws it.
pub(super) fn draw(comparisons: &[Comparison], path: &Path) -> Result<()> {
    let rows: usize = comparisons.iter().map(|comparison| shown(comparison).count()).sum();
    let height = HEAD + comparisons.len() as i32 * (TITLE + GAP) + rows as i32 * ROW + 10;
    let chart = Chart::new(path, height)?;
    chart.text("shunt, beside what it replaces", (20, 22), 20, INK, Align::Left)?;
    chart.text(
        "cost, by medians of interleaved rounds: shorter is better",
        (20, 46),
        13,
        FAINT,
        Align::Left,
    )?;
    let mut top = HEAD;
    for comparison in comparisons {
        chart.text(&comparison.title, (20, top + TITLE / 2), 15, INK, Align::Left)?;
        top += TITLE;
        let begun = top;
        for row in shown(comparison) {
            let cost = cost(comparison, row);
            let middle = top + ROW / 2;
            chart.text(&row.title, (LEFT - 10, middle), 13, INK, Align::Right)?;
            let end = place(cost, 0.0, LONGEST);
            chart.bar((LEFT, top + 4), (end, top + ROW - 4), color(row).to_rgba())?;
            let cut = if cost > LONGEST { " →" } else { "" };
            let void = if row.is_void() { ", void: not on the fast path" } else { "" };
            let figure = format!("{cost:.2}×{cut}   {:.1} {}{void}", row.median, comparison.unit);
            chart.text(&figure, (RIGHT + 10, middle), 13, INK, Align::Left)?;
            top += ROW;
        }
        let one = place(1.0, 0.0, LONGEST);
        chart.line((one, begun), (one, top), FAINT, 1)?;
        top += GAP;
    }
    chart.finish()
}

/// The rows that say something new.
fn shown(comparison: &Comparison) -> impl Iterator<Item = &Row> {
    comparison.rows.iter().filter(|row| !row.name.ends_with("-again"))
}

/// How much more a row costs than the baseline.
fn cost(comparison: &Comparison, row: &Row) -> f64 {
    let ratio = comparison.ratio(row).map_or(1.0, |ratio| ratio.median);
    match comparison.better {
        Better::Less => ratio,
        Better::More => 1.0 / ratio,
    }
}
