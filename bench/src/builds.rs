//! `shunt-bench builds`: ADD and DEL of several builds by turns, or connections to their host ports, or what two of their containers say to each other, for
//! what a change made of them.
//!
//! The same program takes up to 4 % more or less time from one copy of its file to the next, by how the pages of that copy lie in the page cache,
//! and a copy that has lain there for a while is not as it was. So a figure is the median of a series, each series begins with a fresh copy
//! of every build, made in another order, and what counts is the median over the series. Naming a directory twice tells what is noise.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use shunt_lab::load::Bound;
use shunt_lab::{Binaries, Interrupt, Lab};

use crate::add_del::{Setup, Side, Taken, compared, take_turns};
use crate::comparison::Row;
use crate::contestant::Contestant;
use crate::host_port;
use crate::paths;
use crate::ratio::median;
use crate::screen::Screen;
use crate::table;
use crate::workload::Workload;

/// Whose turns, and how many.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Directories with a `shunt` and a `shunt-agent` each; the others are compared with the first
    #[arg(required = true, num_args = 2..)]
    directories: Vec<PathBuf>,
    /// Series, each with copies of its own
    #[arg(long, default_value = "12")]
    series: NonZeroUsize,
    /// ADDs and DELs of each build in a series
    #[arg(long, default_value = "60")]
    rounds: NonZeroUsize,
    /// Measure connections to a host port instead, as many rounds of half a second
    #[arg(long, conflicts_with = "pods")]
    host_port: bool,
    /// Measure round trips, connections and datagrams between two containers instead, in the same way
    #[arg(long)]
    pods: bool,
}

/// What is measured between two containers.
const WORKLOADS: [Workload; 4] = [Workload::Rr, Workload::Crr, Workload::UdpRr, Workload::Udp];

/// Runs all series and shows what came of them.
pub(crate) fn run(screen: &mut Screen, interrupt: &Interrupt, options: &Options) -> Result<()> {
    let builds = options.directories.iter().map(|directory| Binaries::in_directory(directory));
    let builds = builds.collect::<Result<Vec<_>>>()?;
    let bound = Bound { operations: 1_000_000, time: Duration::from_millis(500) };
    if options.pods {
        return between_pods(screen, interrupt, options, &builds, bound);
    }
    if options.host_port {
        let lab = Lab::with_all_programs()?;
        let plan = paths::Plan { rounds: options.rounds.get(), bound };
        let mut comparison = host_port::of_builds(screen, interrupt, &lab, &builds, plan)?;
        for (row, (place, directory)) in
            comparison.rows.iter_mut().zip(options.directories.iter().enumerate())
        {
            row.title = format!("{place} {}", directory.display());
        }
        return table::comparison(screen, &comparison);
    }
    let rows: Vec<Row> = options.directories.iter().enumerate().map(row).collect();
    let (mut adds, mut dels) = (rows.clone(), rows);
    for series in 0..options.series.get() {
        for (build, taken) in once(screen, interrupt, &builds, series, options.rounds.get())? {
            adds[build].figures.push(median(&taken.adds));
            dels[build].figures.push(median(&taken.dels));
        }
    }
    let setting = format!("medians of {} series of {}", options.series, options.rounds);
    let compared = compared(Setup::Plain, &setting, [adds, dels]);
    compared.iter().try_for_each(|comparison| table::comparison(screen, comparison))
}

/// What two containers of each build say to each other, by turns.
fn between_pods(
    screen: &mut Screen,
    interrupt: &Interrupt,
    options: &Options,
    builds: &[Binaries],
    bound: Bound,
) -> Result<()> {
    let lab = Lab::with_all_programs()?;
    let contestant = |(place, (build, directory)): (usize, (&Binaries, &PathBuf))| {
        let title = format!("{place} {}", directory.display());
        Contestant::of_build(&lab, &format!("build-{place}"), &title, build)
    };
    let contestants = builds.iter().zip(&options.directories).enumerate().map(contestant);
    let contestants = contestants.collect::<Result<Vec<_>>>()?;
    let contestants: Vec<_> = contestants.iter().collect();
    let plan = paths::Plan { rounds: options.rounds.get(), bound };
    WORKLOADS.into_iter().try_for_each(|workload| {
        let comparison = paths::compare(screen, interrupt, workload, &contestants, plan)?;
        table::comparison(screen, &comparison)
    })
}

/// A build's row. A directory may be named twice, so its place is part of the name.
fn row((place, directory): (usize, &PathBuf)) -> Row {
    Row::new(&place.to_string(), &format!("{place} {}", directory.display()))
}

/// One series: fresh copies, each with a node of its own, and what they took, with the builds' places.
fn once(
    screen: &mut Screen,
    interrupt: &Interrupt,
    builds: &[Binaries],
    series: usize,
    rounds: usize,
) -> Result<Vec<(usize, Taken)>> {
    let lab = Lab::with_all_programs()?;
    let order = order(builds.len(), series);
    let mut sides = Vec::new();
    for build in &order {
        let copy = builds[*build].copy_to(&lab.directory(&format!("build-{build}"))?)?;
        sides.push(Side::of_build(&lab, &format!("build-{build}-node"), &copy)?);
    }
    let taken = take_turns(screen, interrupt, &sides, rounds)?;
    Ok(order.into_iter().zip(taken).collect())
}

/// In which order a series copies the builds: another one is first each time, and every second time they go backwards.
fn order(builds: usize, series: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..builds).map(|place| (place + series / 2) % builds).collect();
    if series % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_build_is_copied_in_every_place_equally_often() {
        let orders: Vec<_> = (0..6).map(|series| order(3, series)).collect();
        for build in 0..3 {
            let places: Vec<_> =
                orders.iter().map(|order| order.iter().position(|at| *at == build).unwrap()).collect();
            assert!((0..3).all(|place| places.iter().filter(|at| **at == place).count() == 2), "{places:?}");
        }
    }

    #[test]
    fn a_directory_that_is_named_twice_has_two_rows() {
        let same = PathBuf::from("/a");
        let rows = [row((0, &same)), row((1, &same))];
        assert!(rows[0].name != rows[1].name && rows.iter().all(|row| row.title.ends_with("/a")));
    }
}
