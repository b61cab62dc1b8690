//! What it gains: a small pinned, interleaved comparison.

use std::time::Duration;

use anyhow::{Context, Result};
use shunt_lab::load::{Bound, Placement, cpus};
use shunt_lab::{Interrupt, Lab};

use crate::add_del::AddDel;
use crate::contestant::Contestant;
use crate::rounds::{Plan, Rounds};
use crate::screen::{Paint, Screen, bar, pad, right};
use crate::workload::Workload;

/// Rounds of each workload: enough for a picture, not for a claim (that is the benchmark's).
const ROUNDS: usize = 12;

/// Pairs of ADD and DEL.
const PAIRS: usize = 10;

/// Columns of a contestant's name, of a figure, of a bar.
const WIDTHS: [usize; 3] = [26, 12, 20];

/// Measures and shows.
pub(super) fn show(screen: &mut Screen, interrupt: &Interrupt, lab: &Lab) -> Result<()> {
    let aside = format!(
        "both ends on one CPU, {ROUNDS} interleaved rounds, ratios (median, spread) to a bare veth pair"
    );
    screen.heading("What that gains", &aside)?;
    let contestants = [
        Contestant::bare_veth(lab)?,
        Contestant::shunt(lab)?,
        Contestant::bridge(lab)?,
        Contestant::bridge_iptables(lab)?,
    ];
    let contestants: Vec<_> = contestants.iter().collect();
    let cpu = *cpus()?.last().context("no CPU may be used")?;
    let bound = Bound { operations: 2_000, time: Duration::from_millis(100) };
    for workload in Workload::ALL {
        // A datagram is so much cheaper than a connection that a count for one is no bound for the other.
        let bound = if workload.is_latency() { bound } else { Bound { operations: 20_000, ..bound } };
        let plan = Plan { rounds: ROUNDS, bound, at: Placement::one(cpu) };
        let rounds = Rounds::measure(screen, interrupt, workload, &contestants, plan)?;
        table(screen, &rounds, &contestants)?;
    }
    let plugins = AddDel::measure(screen, interrupt, lab, PAIRS)?;
    times(screen, &plugins)
}

fn table(screen: &mut Screen, rounds: &Rounds, contestants: &[&Contestant]) -> Result<()> {
    let workload = rounds.workload;
    let better = if workload.is_latency() { "shorter is better" } else { "longer is better" };
    screen.line(&format!("\n    {}  {}", Paint::Bold.on(workload.title()), Paint::Dim.on(better)))?;
    let figures: Vec<f64> = (0..contestants.len()).map(|index| rounds.figure(index)).collect();
    let most = figures.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (index, contestant) in contestants.iter().enumerate() {
        let ratio = rounds.ratio(index, 0).context("no rounds were measured")?;
        let spread = if index == 0 { String::new() } else { format!("{:.2}–{:.2}", ratio.low, ratio.high) };
        let figure = format!("{:.1} {}", figures[index], workload.unit());
        let row = format!(
            "{}{}  {} {}  {}",
            pad(contestant.title, WIDTHS[0]),
            right(&figure, WIDTHS[1]),
            bar(figures[index] / most, WIDTHS[2]),
            right(&format!("{:.2}×", ratio.median), 6),
            Paint::Dim.on(&spread)
        );
        show_row(screen, &row, contestant.name == "shunt")?;
    }
    Ok(())
}

fn times(screen: &mut Screen, times: &AddDel) -> Result<()> {
    let aside = format!("exec to exit, {PAIRS} interleaved pairs; shorter is better");
    screen.line(&format!("\n    {}  {}", Paint::Bold.on("CNI ADD, CNI DEL"), Paint::Dim.on(&aside)))?;
    let ratios = times.ratios()?.map(|ratio| format!("{:.2}×", ratio.median));
    let one = ["1.00×".to_owned(), "1.00×".to_owned()];
    let [ours, theirs] = [times.shunt.medians(), times.reference.medians()];
    let most = [ours, theirs].iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (title, medians, ratios) in [("shunt", ours, ratios), ("bridge + host-local", theirs, one)] {
        let mut row = pad(title, WIDTHS[0]);
        for (median, ratio) in medians.iter().zip(ratios) {
            row += &right(&format!("{median:.1} ms"), 10);
            row += &format!("  {} {}", bar(median / most, 10), right(&ratio, 6));
        }
        show_row(screen, &row, title == "shunt")?;
    }
    Ok(())
}

fn show_row(screen: &mut Screen, row: &str, ours: bool) -> Result<()> {
    if ours {
        screen.line(&format!("    {}", Paint::Good.on(row)))
    } else {
        screen.line(&format!("    {row}"))
    }
}
