//! What it gains: a small pinned, interleaved comparison.

use std::time::Duration;

use anyhow::Result;
use shunt_lab::load::Bound;
use shunt_lab::{Interrupt, Lab};

use crate::add_del::{self, Setup};
use crate::comparison::{Better, Comparison, Row};
use crate::contestant::Contestant;
use crate::paths::{self, Plan};
use crate::screen::{Paint, Screen, bar, pad, right};
use crate::workload::Workload;

/// Rounds of each workload: enough for a picture, not for a claim (that is the benchmark's).
const ROUNDS: usize = 12;

/// Rounds of ADD and DEL.
const PAIRS: usize = 10;

/// What is shown.
const WORKLOADS: [Workload; 3] = [Workload::Rr, Workload::Crr, Workload::Udp];

/// Columns of a contestant's name, of a figure, of a bar.
const WIDTHS: [usize; 3] = [26, 12, 20];

/// Measures and shows.
pub(super) fn show(screen: &mut Screen, interrupt: &Interrupt, lab: &Lab) -> Result<()> {
    let aside = format!(
        "both ends on one CPU, {ROUNDS} interleaved rounds, ratios (median, spread) to what stands first"
    );
    screen.heading("What that gains", &aside)?;
    let contestants = [
        Contestant::bare_veth(lab)?,
        Contestant::shunt(lab)?,
        Contestant::bridge(lab)?,
        Contestant::bridge_iptables(lab)?,
    ];
    let contestants: Vec<_> = contestants.iter().collect();
    let bound = Bound { operations: 2_000, time: Duration::from_millis(100) };
    for workload in WORKLOADS {
        // A datagram is so much cheaper than a connection that a count for one is no bound for the other.
        let bound = if workload.is_latency() { bound } else { Bound { operations: 20_000, ..bound } };
        let plan = Plan { rounds: ROUNDS, bound };
        let comparison = paths::compare(screen, interrupt, workload, &contestants, plan)?;
        table(screen, &comparison)?;
    }
    let plugins = add_del::compare(screen, interrupt, lab, Setup::Plain, PAIRS)?;
    plugins.iter().try_for_each(|comparison| table(screen, comparison))
}

fn table(screen: &mut Screen, comparison: &Comparison) -> Result<()> {
    let better = match comparison.better {
        Better::Less => "shorter is better",
        Better::More => "longer is better",
    };
    screen.line(&format!("\n    {}  {}", Paint::Bold.on(&comparison.title), Paint::Dim.on(better)))?;
    let most = comparison.rows.iter().map(|row| row.median).fold(f64::MIN_POSITIVE, f64::max);
    comparison.rows.iter().try_for_each(|row| show_row(screen, comparison, row, most))
}

fn show_row(screen: &mut Screen, comparison: &Comparison, row: &Row, most: f64) -> Result<()> {
    let (ratio, spread) = match comparison.ratio(row) {
        None => (1.0, String::new()),
        Some(ratio) => (ratio.median, format!("{:.2}–{:.2}", ratio.low, ratio.high)),
    };
    let line = format!(
        "{}{}  {} {}  {}",
        pad(&row.title, WIDTHS[0]),
        right(&format!("{:.1} {}", row.median, comparison.unit), WIDTHS[1]),
        bar(row.median / most, WIDTHS[2]),
        right(&format!("{ratio:.2}×"), 6),
        Paint::Dim.on(&spread)
    );
    screen.line(&format!("    {}", if row.is_shunt() { Paint::Good.on(&line) } else { line }))
}
