//! `shunt-bench bench`: interleaved rounds with raw results.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use shunt_lab::load::{Bound, Placement, cpus};
use shunt_lab::{Interrupt, Lab};

use crate::add_del::AddDel;
use crate::contestant::Contestant;
use crate::header::Header;
use crate::ratio::Ratio;
use crate::results::Results;
use crate::rounds::{Plan, Rounds};
use crate::screen::{Paint, Screen, pad, right};
use crate::workload::Workload;

/// What is measured, and where the results go.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Only these; all if not given
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Where results.json goes
    #[arg(long, default_value = "bench/out")]
    out: PathBuf,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// TCP round trips
    Rr,
    /// TCP connections
    Crr,
    /// UDP packets
    Udp,
    /// The plugins' times
    AddDel,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn workloads(&self) -> Vec<Workload> {
        let parts = [(Part::Rr, Workload::Rr), (Part::Crr, Workload::Crr), (Part::Udp, Workload::Udp)];
        parts.into_iter().filter(|(part, _)| self.wants(*part)).map(|(_, workload)| workload).collect()
    }

    fn bound(&self) -> Bound {
        let time = Duration::from_millis(if self.quick { 150 } else { 500 });
        // Connections are counted too: conntrack remembers each for two minutes.
        Bound { operations: 1_000_000, time }
    }
}

/// Pairs of ADD and DEL, and rounds: the least that a claim may rest on.
const ROUNDS: usize = 30;

/// The fast-path share below which a row says nothing about the fast path.
const FAST_ENOUGH: f64 = 0.99;

/// Runs the benchmark.
pub(crate) fn run(screen: &mut Screen, interrupt: &Interrupt, options: &Options) -> Result<()> {
    let header = Header::gather();
    screen.heading(
        "shunt, measured",
        &format!("kernel {}, {} CPUs, load {}", header.kernel, header.cpus, header.load),
    )?;
    let mut results = Results::new(header);
    let lab = Lab::new()?;
    let workloads = options.workloads();
    if !workloads.is_empty() {
        paths(screen, interrupt, &lab, options, &workloads, &mut results)?;
    }
    if options.wants(Part::AddDel) {
        let times = AddDel::measure(screen, interrupt, &lab, ROUNDS)?;
        show_times(screen, &times)?;
        results.add_plugin_times(times);
    }
    let written = results.write(&options.out)?;
    screen.line("")?;
    screen.done(&format!("raw rounds in {}", written.display()))
}

fn paths(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    options: &Options,
    workloads: &[Workload],
    results: &mut Results,
) -> Result<()> {
    let bare = Contestant::bare_veth(lab)?;
    let shunt = Contestant::shunt(lab)?;
    let bridge = Contestant::bridge(lab)?;
    let iptables = Contestant::bridge_iptables(lab)?;
    // The first one twice: the same path measured against itself is the noise of this run.
    let contestants = [&bare, &shunt, &bridge, &iptables, &bare];
    let cpu = *cpus()?.last().context("no CPU may be used")?;
    for workload in workloads {
        let plan = Plan { rounds: ROUNDS, bound: options.bound(), at: Placement::one(cpu) };
        let rounds = Rounds::measure(screen, interrupt, *workload, &contestants, plan)?;
        let shares =
            contestants.iter().map(|contestant| contestant.fast_share()).collect::<Result<Vec<_>>>()?;
        show_rounds(screen, &rounds, &contestants, &shares)?;
        results.add_rounds(rounds, &shares);
    }
    Ok(())
}

fn show_rounds(
    screen: &mut Screen,
    rounds: &Rounds,
    contestants: &[&Contestant],
    shares: &[Option<f64>],
) -> Result<()> {
    let unit = rounds.workload.unit();
    screen.heading(
        rounds.workload.title(),
        &format!("{unit}, one CPU, ratios to the bare veth pair by rounds"),
    )?;
    for (index, contestant) in contestants.iter().enumerate() {
        let again = index > 0 && contestant.name == contestants[0].name;
        let title = format!("{}{}", contestant.title, if again { " (again: the noise)" } else { "" });
        let figure = right(&format!("{:.1}", rounds.figure(index)), 8);
        let p99 = rounds.p99(index).map_or_else(String::new, |p99| format!("p99 {p99:.1}"));
        let ratio = rounds.ratio(index, 0).map_or_else(String::new, |ratio| show_ratio(&ratio));
        let share = shares[index].map_or_else(String::new, show_share);
        screen.line(&format!("    {}{figure}  {}  {ratio}{share}", pad(&title, 36), pad(&p99, 10)))?;
    }
    // Shunt is the second; the kernel's two bridges come after it.
    for (to, bridge) in contestants.iter().enumerate().skip(2).take(2) {
        let title = format!("shunt to {}", bridge.title);
        let ratio = rounds.ratio(1, to).map_or_else(String::new, |ratio| show_ratio(&ratio));
        screen.line(&format!("    {}{ratio}", pad(&title, 58)))?;
    }
    Ok(())
}

fn show_share(share: f64) -> String {
    let percent = format!("  {:.2}% fast", share * 100.0);
    if share < FAST_ENOUGH { Paint::Bad.on(&format!("{percent}: void")) } else { percent }
}

fn show_times(screen: &mut Screen, times: &AddDel) -> Result<()> {
    screen.heading(
        "ADD and DEL",
        "milliseconds with exec, against the reference bridge and host-local by pairs",
    )?;
    let [ours, theirs] = [times.shunt.medians(), times.reference.medians()];
    for (index, (verb, ratio)) in ["ADD", "DEL"].iter().zip(times.ratios()?).enumerate() {
        let [ours, theirs] = [ours[index], theirs[index]];
        screen.line(&format!(
            "    {verb}  shunt {ours:6.1}   reference {theirs:6.1}   {}",
            show_ratio(&ratio)
        ))?;
    }
    Ok(())
}

fn show_ratio(ratio: &Ratio) -> String {
    let spread =
        format!("spread {:.3}–{:.3}, 95% {:.3}–{:.3}", ratio.low, ratio.high, ratio.lower95, ratio.upper95);
    format!("{:.3}×  {}", ratio.median, Paint::Dim.on(&spread))
}
