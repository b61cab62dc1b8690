//! The same as a part of the whole benchmark: every setting is a round, with both arms in it.

use anyhow::Result;
use shunt_lab::Interrupt;

use super::{Arm, BESIDE, Direction, FLOWS, Stage, keep, wait};
use crate::comparison::{Better, Comparison, Row};
use crate::screen::Screen;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// In Mbit/s.
    pub(crate) rates: &'a [u64],
    /// That are measured of each setting, after the first one.
    pub(crate) seconds: u64,
    /// How often a datagram's time is measured each way.
    pub(crate) repeats: usize,
}

const DIRECTIONS: [Direction; 2] = [Direction::Ingress, Direction::Egress];

/// Measures goodput under a limit, and a datagram's time beside a flow that takes all of it.
pub(crate) fn compare(screen: &mut Screen, interrupt: &Interrupt, plan: Plan<'_>) -> Result<[Comparison; 2]> {
    let mut goodput = rows();
    for (turn, mbit) in plan.rates.iter().enumerate() {
        for direction in DIRECTIONS {
            screen.progress(
                turn as f64 / plan.rates.len() as f64,
                &format!("{mbit} Mbit/s, {direction:?}"),
                None,
            );
            for (row, arm) in goodput.iter_mut().zip(ARMS) {
                let stage = Stage::set(arm, *mbit, direction)?;
                for flows in FLOWS {
                    interrupt.check()?;
                    let kept = keep(&stage, (arm, *mbit, direction, flows), plan.seconds)?;
                    row.figures.push(100.0 * kept.afterwards);
                }
            }
        }
    }
    let mut delay = rows();
    for turn in 0..plan.repeats {
        screen.progress(turn as f64 / plan.repeats as f64, "datagrams beside a flow", None);
        for direction in DIRECTIONS {
            for (row, arm) in delay.iter_mut().zip(ARMS) {
                interrupt.check()?;
                row.figures.push(wait(arm, direction, plan.seconds)?.beside_median);
            }
        }
    }
    let rates: Vec<String> = plan.rates.iter().map(u64::to_string).collect();
    let goodput = Comparison {
        name: "limits".to_owned(),
        title: "Goodput under a limit".to_owned(),
        unit: "% of the rate".to_owned(),
        better: Better::More,
        setting: format!(
            "{} Mbit/s, towards a container and from it, 1 and 8 flows: each a round; at most 96.5% is payload",
            rates.join(", ")
        ),
        rows: goodput,
    };
    let delay = Comparison {
        name: "limits-delay".to_owned(),
        title: "A datagram's round trip under a limit".to_owned(),
        unit: "ms".to_owned(),
        better: Better::Less,
        setting: format!("beside a flow that takes all {BESIDE} Mbit/s, towards a container and from it"),
        rows: delay,
    };
    Ok([goodput.judged(), delay.judged()])
}

const ARMS: [Arm; 2] = [Arm::Reference, Arm::Shunt];

fn rows() -> Vec<Row> {
    vec![Row::new("reference", "bridge + bandwidth"), Row::new("shunt", "shunt")]
}
