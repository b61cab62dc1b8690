//! Interleaved rounds: A B C, B C A, C A B …, so that a disturbance meets all alike and none is always first.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;
use shunt_lab::Interrupt;
use shunt_lab::load::{Bound, Placement, Sample};

use crate::contestant::Contestant;
use crate::ratio::{Ratio, median};
use crate::screen::Screen;
use crate::workload::Workload;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Rounds, after one that is thrown away.
    pub(crate) rounds: usize,
    /// Of each measurement.
    pub(crate) bound: Bound,
    /// Where.
    pub(crate) at: Placement,
}

/// One workload's samples.
#[derive(Debug, Serialize)]
pub(crate) struct Rounds {
    /// Which.
    pub(crate) workload: Workload,
    /// Where its ends ran.
    pub(crate) at: Placement,
    /// By contestant, in their order; in each, one sample a round.
    pub(crate) rows: Vec<Row>,
}

/// One contestant's samples.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// [`Contestant::name`].
    pub(crate) name: String,
    /// One a round.
    pub(crate) samples: Vec<Sample>,
}

impl Rounds {
    /// Measures `workload` on all `contestants`.
    pub(crate) fn measure(
        screen: &mut Screen,
        interrupt: &Interrupt,
        workload: Workload,
        contestants: &[&Contestant],
        plan: Plan,
    ) -> Result<Self> {
        let row = |contestant: &&Contestant| Row { name: contestant.name.to_owned(), samples: Vec::new() };
        let mut rows: Vec<Row> = contestants.iter().map(row).collect();
        for round in 0..=plan.rounds {
            screen.progress(&format!("{}: round {round} of {}", workload.title(), plan.rounds));
            for place in 0..contestants.len() {
                interrupt.check()?;
                let turn = (place + round) % contestants.len();
                let contestant = contestants[turn];
                let sample = workload
                    .measure(contestant.path()?, plan.at, plan.bound)
                    .with_context(|| format!("{} over {}", workload.title(), contestant.title))?;
                // The first round warms caches and resolves neighbours.
                if round > 0 {
                    rows[turn].samples.push(sample);
                }
            }
        }
        Ok(Self { workload, at: plan.at, rows })
    }

    /// The compared figure of the contestant at `index`, each round's.
    pub(crate) fn figures(&self, index: usize) -> Vec<f64> {
        self.rows[index].samples.iter().map(|sample| self.workload.figure(sample)).collect()
    }

    /// Its median.
    pub(crate) fn figure(&self, index: usize) -> f64 {
        median(&self.figures(index))
    }

    /// The median of its rounds' 99th percentiles, in µs; none where only the rate is measured.
    pub(crate) fn p99(&self, index: usize) -> Option<f64> {
        let all: Option<Vec<f64>> = self.rows[index].samples.iter().map(|sample| sample.p99_us).collect();
        all.map(|all| median(&all))
    }

    /// Of the contestant at `index` to every contestant; one that is measured twice counts with its first row.
    pub(crate) fn ratios(&self, index: usize) -> BTreeMap<String, Ratio> {
        let to = |to: usize| Some((self.rows[to].name.clone(), self.ratio(index, to)?));
        (0..self.rows.len()).rev().filter_map(to).collect()
    }

    /// Of the contestant at `index` to the one at `to`.
    pub(crate) fn ratio(&self, index: usize, to: usize) -> Option<Ratio> {
        Ratio::of(&self.figures(index), &self.figures(to))
    }
}
