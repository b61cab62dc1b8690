//! The comparison of paths: a workload on every contestant.

use anyhow::{Context, Result};
use shunt_lab::Interrupt;
use shunt_lab::load::{Bound, cpus};

use crate::comparison::{Comparison, Row};
use crate::contestant::Contestant;
use crate::rounds::Rounds;
use crate::screen::Screen;
use crate::workload::Workload;

/// How much is measured of each workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Rounds, after one that is thrown away.
    pub(crate) rounds: usize,
    /// Of each measurement.
    pub(crate) bound: Bound,
}

/// Measures `workload` on all `contestants`. One that is there twice is the second time named `…-again`: what it differs
/// from itself is the noise.
pub(crate) fn compare(
    screen: &mut Screen,
    interrupt: &Interrupt,
    workload: Workload,
    contestants: &[&Contestant],
    plan: Plan,
) -> Result<Comparison> {
    let at = workload.placement(&cpus()?);
    let mut rows: Vec<Row> = Vec::new();
    for contestant in contestants {
        let again = rows.iter().any(|row| row.name == contestant.name);
        rows.push(if again {
            Row::new(
                &format!("{}-again", contestant.name),
                &format!("{}, again: the noise", contestant.title),
            )
        } else {
            Row::new(&contestant.name, &contestant.title)
        });
    }
    let rounds =
        Rounds { title: workload.title(), count: plan.rounds, warm_up: 1, contestants: contestants.len() };
    let before = contestants.iter().map(|contestant| contestant.sent()).collect::<Result<Vec<_>>>()?;
    rounds.run(screen, interrupt, |turn| {
        let contestant = contestants[turn.contestant];
        let sample = workload
            .measure(contestant.path()?, at, plan.bound)
            .with_context(|| format!("{} over {}", workload.title(), contestant.title))?;
        if turn.counts {
            let row = &mut rows[turn.contestant];
            row.figures.push(workload.figure(&sample));
            row.p99_us.extend(sample.p99_us);
        }
        Ok(())
    })?;
    for ((row, contestant), before) in rows.iter_mut().zip(contestants).zip(before) {
        let after = contestant.sent()?;
        row.fast_share = before.zip(after).map(|(before, after)| after.since(before).fast_share());
    }
    Ok(workload.comparison(at, rows).judged())
}
