//! One comparison with all its rounds: each a dot, the spread a thin line, what may be claimed a thick one.

use std::path::Path;

use anyhow::Result;
use plotters::style::Color;

use super::chart::{Align, Chart, FAINT, INK, LEFT, RIGHT, color, place};
use crate::comparison::{Better, Comparison, Row};

const HEAD: i32 = 70;
const ROW: i32 = 40;
const FOOT: i32 = 40;

/// Draws it: every row's ratios to the baseline.
pub(super) fn draw(comparison: &Comparison, path: &Path) -> Result<()> {
    let Some(baseline) = comparison.baseline() else { return Ok(()) };
    let rows: Vec<&Row> = comparison.rows.iter().skip(1).collect();
    let chart = Chart::new(path, HEAD + rows.len() as i32 * ROW + FOOT)?;
    let better = match comparison.better {
        Better::Less => "less is better",
        Better::More => "more is better",
    };
    chart.text(&comparison.title, (20, 22), 20, INK, Align::Left)?;
    let aside = format!(
        "ratios to {} ({:.1} {}), {} rounds, {}; {better}",
        baseline.title,
        baseline.median,
        comparison.unit,
        baseline.figures.len(),
        comparison.setting
    );
    chart.text(&aside, (20, 48), 13, FAINT, Align::Left)?;
    let (low, high) = scale(comparison, &rows);
    let bottom = HEAD + rows.len() as i32 * ROW;
    for value in ticks(low, high) {
        let x = place(value, low, high);
        let one = (value - 1.0).abs() < 1e-9;
        chart.line((x, HEAD), (x, bottom), if one { INK } else { FAINT }, 1)?;
        chart.text(&format!("{value:.2}×"), (x, bottom + 16), 12, FAINT, Align::Middle)?;
    }
    for (index, row) in rows.into_iter().enumerate() {
        let middle = HEAD + index as i32 * ROW + ROW / 2;
        chart.text(&row.title, (LEFT - 14, middle), 13, INK, Align::Right)?;
        let Some(ratio) = comparison.ratio(row) else { continue };
        let x = |value| place(value, low, high);
        for (this, that) in row.figures.iter().zip(&baseline.figures) {
            chart.dot((x(this / that), middle), 3, color(row).mix(0.25))?;
        }
        chart.line((x(ratio.low), middle), (x(ratio.high), middle), color(row), 1)?;
        chart.line((x(ratio.lower95), middle), (x(ratio.upper95), middle), color(row), 5)?;
        chart.dot((x(ratio.median), middle), 6, color(row).to_rgba())?;
        let void = if row.is_void() { ", void" } else { "" };
        let figure = format!("{:.3}×   {:.1} {}{void}", ratio.median, row.median, comparison.unit);
        chart.text(&figure, (RIGHT + 14, middle), 13, INK, Align::Left)?;
    }
    chart.finish()
}

/// From the least to the most of the spreads and 1, with some room: a single wild round must not flatten the others.
fn scale(comparison: &Comparison, rows: &[&Row]) -> (f64, f64) {
    let ratios = rows.iter().filter_map(|row| comparison.ratio(row));
    let (low, high) =
        ratios.fold((1.0_f64, 1.0_f64), |(low, high), ratio| (low.min(ratio.low), high.max(ratio.high)));
    let room = ((high - low) * 0.1).max(0.02);
    ((low - room).max(0.0), high + room)
}

/// Round values on a scale, seven at most, 1 among them where it is on it.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let fits = |step: &f64| (high - low) / step <= 7.0;
    let step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0].into_iter().find(fits).unwrap_or(high);
    let first = (low / step).ceil() as i32;
    (first..).map(|count| f64::from(count) * step).take_while(|value| *value <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_round_values_and_one_among_them() {
        let found: Vec<f64> = ticks(0.64, 2.04).into_iter().map(rounded).collect();
        assert_eq!(found, [0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]);
        assert!(ticks(0.98, 1.07).iter().any(|value| rounded(*value) == 1.0));
        assert!(ticks(0.0, 30.0).len() <= 8);
    }

    fn rounded(value: f64) -> f64 {
        (value * 1e6).round() / 1e6
    }
}
