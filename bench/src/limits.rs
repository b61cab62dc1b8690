//! `shunt-bench limits`: how well a configured rate is kept, and how long a datagram waits beside a flow that takes all of it,
//! with shunt and with the reference plugins in the same run.

mod attachments;
mod flows;
mod neighbour;
mod part;
mod samples;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use shunt_lab::{Interrupt, Lab, Namespace, Network, Node, Sandbox};

use crate::outside::{NODE, OUTSIDE, join};
use crate::screen::Screen;
use flows::{End, Flows, Load};
pub(crate) use part::{Plan, compare};
use samples::quantile;

/// What is measured, and where the results go.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The rates, in Mbit/s
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000", value_name = "MBIT")]
    rates: Vec<u64>,
    /// Seconds that are measured after the first one
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Limited containers on one node at the end
    #[arg(long, default_value_t = 500)]
    crowd: usize,
    /// Write the results here too, as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The rate beside whose flow datagrams are timed, in Mbit/s.
const BESIDE: u64 = 100;

/// How much may pass at once: 10 ms of the rate, as both arms are told.
const BURST_SHARE: u64 = 100;

const FLOWS: [usize; 2] = [1, 8];

/// Which way the limit is, as the container sees it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Ingress,
    Egress,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Arm {
    Shunt,
    Reference,
}

/// Who is at the other end of what is limited.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Peer {
    /// A container of the same node.
    Neighbour,
    /// A host beyond the node's uplink.
    Outside,
}

/// Goodput as a share of the configured rate.
#[derive(Debug, Serialize)]
struct Kept {
    arm: Arm,
    mbit: u64,
    direction: Direction,
    peer: Peer,
    flows: usize,
    first_second: f64,
    afterwards: f64,
}

/// Round trips of small datagrams, in milliseconds.
#[derive(Debug, Serialize)]
struct Waited {
    arm: Arm,
    direction: Direction,
    idle_median: f64,
    beside_median: f64,
    beside_p90: f64,
}

/// A limited container and a free one on one node, and a host outside. Containers are dropped before the node, and the lab
/// last.
struct Stage {
    peer: Peer,
    limited: Sandbox,
    free: Sandbox,
    outside: Namespace,
    _node: Node,
    _lab: Lab,
}

impl Stage {
    fn set(arm: Arm, mbit: u64, direction: Direction) -> Result<Self> {
        let lab = Lab::with_all_programs()?;
        let way = match direction {
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        };
        let rate = mbit * 1_000_000;
        let limits = json!({ "type": "bandwidth", format!("{way}Rate"): rate, format!("{way}Burst"): rate / BURST_SHARE });
        let subnets = ["10.77.0.0/24"];
        let (node, plain, limited): (Node, Network, Network) = match arm {
            Arm::Shunt => {
                let node = Node::start(&lab, "node")?;
                let plain = node.network("pods", "cni0", &subnets);
                let limited = plain.clone().with("runtimeConfig", json!({ "bandwidth": limits }));
                (node, plain, limited)
            }
            Arm::Reference => {
                let node = Node::bare(&lab, "node")?;
                let plain = node.reference_network("pods", "cni0", &subnets);
                let limited = plain.clone().then(limits);
                (node, plain, limited)
            }
        };
        let limited = Sandbox::start(&lab, &node, &limited, "limited")?;
        let free = Sandbox::start(&lab, &node, &plain, "free")?;
        let outside = lab.namespace("outside")?;
        join(&node, &outside)?;
        outside.command("ip", &["route", "add", "default", "via", &NODE.to_string()])?;
        Ok(Self { peer: Peer::Neighbour, limited, free, outside, _node: node, _lab: lab })
    }

    /// Who sends what the limit is for, and who gets it.
    fn ends(&self, direction: Direction) -> Result<(End<'_>, End<'_>)> {
        let limited = End::of(&self.limited)?;
        let peer = match self.peer {
            Peer::Neighbour => End::of(&self.free)?,
            Peer::Outside => End { namespace: &self.outside, address: OUTSIDE },
        };
        Ok(match direction {
            Direction::Ingress => (peer, limited),
            Direction::Egress => (limited, peer),
        })
    }
}

/// Measures.
///
/// # Errors
/// When something is missing, fails or is interrupted.
pub(crate) fn run(screen: &mut Screen, interrupt: &Interrupt, options: &Options) -> Result<()> {
    let (mut kept, mut waited) = (Vec::new(), Vec::new());
    let setting = "share of the configured rate; 10 ms of burst; payload of TCP is at most 96.5% of packets of 1500 bytes";
    screen.heading("Goodput under a limit", setting)?;
    for mbit in &options.rates {
        for direction in [Direction::Ingress, Direction::Egress] {
            for arm in [Arm::Shunt, Arm::Reference] {
                let mut stage = Stage::set(arm, *mbit, direction)?;
                for (peer, flows) in [Peer::Neighbour, Peer::Outside]
                    .into_iter()
                    .flat_map(|peer| FLOWS.map(|flows| (peer, flows)))
                {
                    interrupt.check()?;
                    stage.peer = peer;
                    let measured = keep(&stage, (arm, *mbit, direction, flows), options.seconds)?;
                    screen.line(&format!(
                        "    {:<10} {mbit:>5} Mbit/s {:<8} {:<9} {flows} flows: first second {:>6.1}%, then {:>6.1}%",
                        format!("{arm:?}"),
                        format!("{direction:?}"),
                        format!("{peer:?}"),
                        100.0 * measured.first_second,
                        100.0 * measured.afterwards
                    ))?;
                    kept.push(measured);
                }
            }
        }
    }
    screen
        .heading("A datagram's round trip", &format!("ms, beside one flow that takes all {BESIDE} Mbit/s"))?;
    for direction in [Direction::Ingress, Direction::Egress] {
        for arm in [Arm::Shunt, Arm::Reference] {
            interrupt.check()?;
            let measured = wait(arm, direction, options.seconds)?;
            screen.line(&format!(
                "    {:<10} {:<8} idle {:>7.3}, beside it {:>7.2} (p90 {:.2})",
                format!("{arm:?}"),
                format!("{direction:?}"),
                measured.idle_median,
                measured.beside_median,
                measured.beside_p90
            ))?;
            waited.push(measured);
        }
    }
    screen
        .heading("What a limit costs a neighbour without one", "µs of a datagram's round trip, in turns")?;
    let neighbour = neighbour::compare(interrupt)?;
    screen.line(&format!(
        "    median {:.2} beside a limited container, {:.2} without one: {:.3}×",
        neighbour.beside, neighbour.alone, neighbour.ratio
    ))?;
    screen.heading("What limits cost an ADD", "ms, with and without, in turns; execs included")?;
    let added = attachments::compare(interrupt)?;
    screen.line(&format!(
        "    median {:.2} with a limit each way, {:.2} without: {:.2}×",
        added.limited, added.plain, added.ratio
    ))?;
    let crowd = attachments::crowd(interrupt, options.crowd)?;
    let shares: Vec<_> = crowd.shares.iter().map(|share| format!("{:.1}%", 100.0 * share)).collect();
    screen.line(&format!(
        "    {} limited containers: the last ten ADDs took {:.2} each; some of them get {} of their rate",
        crowd.attachments,
        crowd.last,
        shares.join(", ")
    ))?;
    if let Some(out) = &options.out {
        let results = json!({ "goodput": kept, "round_trips": waited, "neighbour": neighbour, "add": added, "crowd": crowd });
        let text = serde_json::to_string_pretty(&results)?;
        std::fs::write(out, text + "\n").with_context(|| format!("write {}", out.display()))?;
    }
    Ok(())
}

fn keep(stage: &Stage, what: (Arm, u64, Direction, usize), seconds: u64) -> Result<Kept> {
    let (arm, mbit, direction, flows) = what;
    let (from, to) = stage.ends(direction)?;
    let load = Load::start(from, to, flows)?;
    let second = Duration::from_secs(1);
    let bits = |first: Flows, last: Flows| {
        8.0 * (last.bytes - first.bytes) as f64 / (last.at - first.at).as_secs_f64()
    };
    let begun = load.now();
    let first = load.after(second);
    let last = load.after(second * u32::try_from(1 + seconds)?);
    let rate = mbit as f64 * 1e6;
    Ok(Kept {
        arm,
        mbit,
        direction,
        peer: stage.peer,
        flows,
        first_second: bits(begun, first) / rate,
        afterwards: bits(first, last) / rate,
    })
}

fn wait(arm: Arm, direction: Direction, seconds: u64) -> Result<Waited> {
    let stage = Stage::set(arm, BESIDE, direction)?;
    let (from, to) = stage.ends(direction)?;
    let mut idle = flows::round_trips(from, to, Duration::from_secs(1))?;
    let load = Load::start(from, to, 1)?;
    load.after(Duration::from_secs(1));
    let mut beside = flows::round_trips(from, to, Duration::from_secs(seconds))?;
    Ok(Waited {
        arm,
        direction,
        idle_median: quantile(&mut idle, 0.5)?,
        beside_median: quantile(&mut beside, 0.5)?,
        beside_p90: quantile(&mut beside, 0.9)?,
    })
}
