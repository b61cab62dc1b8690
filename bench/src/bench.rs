//! `shunt-bench bench`: interleaved rounds, with raw results, a report and charts.

mod variants;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum as _};
use shunt_lab::load::Bound;
use shunt_lab::{Interrupt, Lab};

use crate::add_del::{self, Setup};
use crate::change;
use crate::comparison::Comparison;
use crate::contestant::Contestant;
use crate::crowd;
use crate::header::Header;
use crate::host_port;
use crate::limits;
use crate::many_bridges;
use crate::memory;
use crate::nodes::Way;
use crate::part::Part;
use crate::paths::{self, Plan};
use crate::report;
use crate::results::{Fact, NotMeasured, Results};
use crate::screen::Screen;
use crate::table;
use crate::verified;
use crate::workload::Workload;

/// What is measured, and where the results go.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Shorter measurements, and fewer attachments
    #[arg(long)]
    quick: bool,
    /// Only this; may be given more than once
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<Part>,
    /// Where results.json, report.md and the charts go
    #[arg(long, default_value = "bench/out", value_name = "DIR")]
    out: PathBuf,
    /// Measure nothing: say what got better or worse between two results files, beyond the noise
    #[arg(long, num_args = 2, value_names = ["OLD.json", "NEW.json"])]
    compare: Option<Vec<PathBuf>>,
}

impl Options {
    fn parts(&self) -> Vec<Part> {
        let wanted = |part: &&Part| self.only.is_empty() || self.only.contains(part);
        Part::value_variants().iter().filter(wanted).copied().collect()
    }

    fn bound(&self) -> Bound {
        let time = Duration::from_millis(if self.quick { 150 } else { 500 });
        // Connections are counted too: conntrack remembers each for two minutes.
        Bound { operations: 1_000_000, time }
    }

    /// Host ports that nodes have.
    fn host_ports(&self) -> &[u16] {
        if self.quick { &[1, 100] } else { &[1, 100, 5000] }
    }

    /// Host ports that nodes with others' rules have.
    fn few_and_many_host_ports(&self) -> &[u16] {
        if self.quick { &[1, 100] } else { &[1, 5000] }
    }

    /// The larger of the nodes whose paths are compared: its name, what a person reads, its attachments.
    fn paths_among(&self) -> (&'static str, &'static str, usize) {
        if self.quick {
            ("shunt-50", "50 attachments", 50)
        } else {
            ("shunt-1000", "1,000 attachments", 1000)
        }
    }

    /// Attachments that the crowded nodes have.
    fn crowds(&self) -> &[usize] {
        if self.quick { &[0, 50] } else { &[0, 100, 1000] }
    }
}

/// Rounds: the least that a claim may rest on.
const ROUNDS: usize = 30;

/// Rounds of streams, which take a second each.
const STREAM_ROUNDS: usize = 10;

/// Runs the benchmark. A part that fails is named with its reason, and the others go on.
///
/// # Errors
/// When a part could not be measured; an interrupt; what cannot be written.
pub(crate) fn run(screen: &mut Screen, interrupt: &Interrupt, options: &Options) -> Result<()> {
    if let Some([old, new]) = options.compare.as_deref() {
        return change::show(screen, &Results::read(old)?, &Results::read(new)?);
    }
    let header = Header::gather();
    screen.heading(
        "shunt, measured",
        &format!("kernel {}, {} CPUs, load {}", header.kernel, header.cpus, header.load),
    )?;
    let mut results = Results::new(header);
    if !results.header.reference_has_nftables() {
        let why = "the reference plugins here write no nftables rules; they do since 1.6".to_owned();
        results.left_out.push(NotMeasured { name: "bridge-nftables".to_owned(), why });
    }
    let paths = Lab::with_all_programs()?;
    let mut contestants = Vec::new();
    for part in options.parts() {
        // Parts give their nodes the same names; of one part's the next has use only where both are paths.
        let own = part.workload().is_none().then(Lab::with_all_programs).transpose()?;
        let lab = own.as_ref().unwrap_or(&paths);
        let mut bench = Bench { screen, interrupt, options, lab, contestants: &mut contestants };
        let measured = bench.measure(part, &mut results);
        interrupt.check()?;
        if let Err(error) = measured {
            let missing = NotMeasured { name: part.name(), why: format!("{error:#}") };
            screen.failed(&format!("{} was not measured: {}", missing.name, missing.why))?;
            results.not_measured.push(missing);
        }
    }
    drop(contestants);
    report::write(&results, &options.out)?;
    screen.line("")?;
    screen.done(&format!("results.json, report.md and charts are in {}", options.out.display()))?;
    if !results.not_measured.is_empty() {
        bail!("{} parts were not measured", results.not_measured.len());
    }
    Ok(())
}

/// The paths: the first one is what the others are compared to.
fn contestants(lab: &Lab, has_nftables: bool) -> Result<Vec<Contestant>> {
    let mut all = vec![
        Contestant::bare_veth(lab)?,
        Contestant::shunt(lab)?,
        Contestant::bridge(lab)?,
        Contestant::bridge_iptables(lab)?,
    ];
    if has_nftables {
        all.push(Contestant::bridge_nftables(lab)?);
    }
    all.push(Contestant::loopback(lab)?);
    Ok(all)
}

struct Bench<'a> {
    screen: &'a mut Screen,
    interrupt: &'a Interrupt,
    options: &'a Options,
    lab: &'a Lab,
    /// Made when the first part wants them.
    contestants: &'a mut Vec<Contestant>,
}

impl Bench<'_> {
    fn measure(&mut self, part: Part, results: &mut Results) -> Result<()> {
        if let Some(workload) = part.workload() {
            return self.path(workload, results);
        }
        match part {
            Part::AddDel => self.plugins(Setup::Plain, results),
            Part::AddDelMasquerade => self.plugins(Setup::Masquerade, results),
            Part::AddDelChain => self.plugins(Setup::Chain, results),
            Part::AddDelLimited => self.limited_plugins(results),
            Part::HostPort => self.host_ports(results),
            Part::Limits => self.limits(results),
            Part::CrowdPaths => self.crowd_paths(results),
            Part::ManyBridges => self.many_bridges(results),
            Part::NodesRoutes => self.nodes(Way::Routes, results),
            Part::NodesVxlan => self.nodes(Way::Vxlan, results),
            Part::Policed => self.policed(results),
            Part::Watched => self.watched(results),
            Part::BigTcp => self.big_tcp(results),
            Part::HeededHostPort => self.heeded_host_port(results),
            Part::HeededMasquerade => self.heeded_masquerade(results),
            Part::Programs => self.programs(results),
            _ => self.crowd(results),
        }
    }

    fn path(&mut self, workload: Workload, results: &mut Results) -> Result<()> {
        if self.contestants.is_empty() {
            *self.contestants = contestants(self.lab, results.header.reference_has_nftables())?;
        }
        let mut contestants: Vec<&Contestant> = self.contestants.iter().collect();
        // The first one twice: the same path measured against itself is the noise of this run.
        contestants.extend(self.contestants.first());
        let rounds = if matches!(workload, Workload::Stream(_)) { STREAM_ROUNDS } else { ROUNDS };
        let plan = Plan { rounds, bound: self.options.bound() };
        let comparison = paths::compare(self.screen, self.interrupt, workload, &contestants, plan)?;
        self.keep(comparison, results)
    }

    fn plugins(&mut self, setup: Setup, results: &mut Results) -> Result<()> {
        let both = add_del::compare(self.screen, self.interrupt, self.lab, setup, ROUNDS)?;
        both.into_iter().try_for_each(|comparison| self.keep(comparison, results))
    }

    fn limited_plugins(&mut self, results: &mut Results) -> Result<()> {
        let both = add_del::compare_limits(self.screen, self.interrupt, self.lab, ROUNDS)?;
        both.into_iter().try_for_each(|comparison| self.keep(comparison, results))
    }

    fn host_ports(&mut self, results: &mut Results) -> Result<()> {
        let mappings = self.options.host_ports();
        let plan = Plan { rounds: ROUNDS, bound: self.options.bound() };
        let both = host_port::compare(self.screen, self.interrupt, self.lab, mappings, plan)?;
        both.into_iter().try_for_each(|comparison| self.keep(comparison, results))
    }

    fn limits(&mut self, results: &mut Results) -> Result<()> {
        let plan = if self.options.quick {
            limits::Plan { rates: &[100], seconds: 2, repeats: 1 }
        } else {
            limits::Plan { rates: &[10, 100, 1000], seconds: 5, repeats: 5 }
        };
        let both = limits::compare(self.screen, self.interrupt, plan)?;
        both.into_iter().try_for_each(|comparison| self.keep(comparison, results))
    }

    fn crowd(&mut self, results: &mut Results) -> Result<()> {
        let sizes = self.options.crowds();
        memory::ensure_room_for(sizes.iter().sum())?;
        let crowd = crowd::measure(self.screen, self.interrupt, self.lab, sizes, ROUNDS)?;
        self.keep_facts(crowd.facts, results)?;
        crowd.times.into_iter().try_for_each(|comparison| self.keep(comparison, results))
    }

    fn many_bridges(&mut self, results: &mut Results) -> Result<()> {
        let per_bridge = if self.options.quick { 50 } else { 1000 };
        let facts = many_bridges::measure(self.screen, self.interrupt, self.lab, per_bridge)?;
        self.keep_facts(facts, results)
    }

    fn programs(&mut self, results: &mut Results) -> Result<()> {
        self.keep_facts(verified::measure(self.lab)?, results)
    }

    fn keep_facts(&mut self, facts: Vec<Fact>, results: &mut Results) -> Result<()> {
        table::facts(self.screen, &facts)?;
        results.facts.extend(facts);
        report::write(results, &self.options.out).context("write what was measured so far")
    }

    fn keep(&mut self, comparison: Comparison, results: &mut Results) -> Result<()> {
        table::comparison(self.screen, &comparison)?;
        results.comparisons.push(comparison);
        // What was measured stays, whatever happens to the rest.
        report::write(results, &self.options.out).context("write what was measured so far")
    }
}
