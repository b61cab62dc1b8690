//! A node with many attachments: what another ADD and its DEL cost there, how much memory the agent takes, how long a new agent
//! takes to find everything again, how often it wakes when nothing happens, and how long it runs then.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use shunt_lab::{Interrupt, Lab, Network, Node, Sandbox, Threads};

use crate::add_del::milliseconds;
use crate::comparison::{Better, Comparison, Row};
use crate::results::Fact;
use crate::rounds::Rounds;
use crate::screen::Screen;

/// Attachments on a bridge; a bridge has room for 1,023 ports.
pub(crate) const PER_BRIDGE: usize = 500;

/// How long containers that were made are heard of: the kernel told of their bridge ports for ten seconds, 83 times a second.
pub(crate) const SETTLING: Duration = Duration::from_secs(15);

/// How long the agent is watched doing nothing.
const IDLE: Duration = Duration::from_secs(5);

/// What looks may add up to, in wake-ups a second: that of the agent's thread each second, and that of the runtime's each fifth.
pub(crate) const WAKE_UPS: f64 = 2.0;

/// Percent of a processor that looking each second may take.
const IDLE_SHARE: f64 = 0.2;

/// KiB of the agent with 1,000 attachments.
const RESIDENT_KIB: f64 = 30.0 * 1024.0;

/// What there was to see.
pub(crate) struct Crowd {
    /// ADD, and DEL, among none and among `sizes` others.
    pub(crate) times: [Comparison; 2],
    /// Of the agent, with all of them.
    pub(crate) facts: Vec<Fact>,
}

/// Fills one node for each of `sizes`, and adds and deletes one container more on each in interleaved rounds.
pub(crate) fn measure(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    sizes: &[usize],
    rounds: usize,
) -> Result<Crowd> {
    let mut nodes = Vec::new();
    for size in sizes {
        nodes.push(Crowded::fill(screen, interrupt, lab, *size)?);
    }
    // The containers that have just come announce themselves, each to all others; that is not what an ADD costs.
    screen.progress(0.0, "the nodes settle", Some(SETTLING));
    std::thread::sleep(SETTLING);
    interrupt.check()?;
    let rows = || sizes.iter().map(|size| Row::new(&format!("shunt-{size}"), &format!("shunt among {size}")));
    let [mut adds, mut dels]: [Vec<Row>; 2] = [rows().collect(), rows().collect()];
    let plan =
        Rounds { title: "ADD and DEL among others", count: rounds, warm_up: 1, contestants: nodes.len() };
    plan.run(screen, interrupt, |turn| {
        let (added, deleted) = nodes[turn.contestant].once_more(lab, turn.round)?;
        if turn.counts {
            adds[turn.contestant].figures.push(milliseconds(added));
            dels[turn.contestant].figures.push(milliseconds(deleted));
        }
        Ok(())
    })?;
    let times = [("add", "ADD", adds), ("del", "DEL", dels)].map(|(name, title, rows)| {
        let comparison = Comparison {
            name: format!("{name}-crowded"),
            title: format!("CNI {title} among other attachments"),
            unit: "ms".to_owned(),
            better: Better::Less,
            setting: "exec to exit".to_owned(),
            rows,
        };
        comparison.judged()
    });
    let facts = match nodes.last_mut() {
        Some(largest) => largest.facts(screen)?,
        None => Vec::new(),
    };
    Ok(Crowd { times, facts })
}

/// A node and its containers.
struct Crowded {
    networks: Vec<Network>,
    sandboxes: Vec<Sandbox>,
    node: Node,
}

impl Crowded {
    fn fill(screen: &mut Screen, interrupt: &Interrupt, lab: &Lab, size: usize) -> Result<Self> {
        let node = Node::start(lab, &format!("crowd-{size}"))?;
        let bridges = size.div_ceil(PER_BRIDGE).max(1);
        let network = |index: usize| {
            node.network(
                &format!("n{index}"),
                &format!("cni{index}"),
                &[&format!("10.{}.0.0/16", 100 + index)],
            )
        };
        let networks: Vec<_> = (0..bridges).map(network).collect();
        let mut sandboxes = Vec::with_capacity(size);
        for index in 0..size {
            interrupt.check()?;
            screen.progress(index as f64 / size as f64, &format!("{size} attachments"), None);
            let network = &networks[index / PER_BRIDGE];
            sandboxes.push(Sandbox::start(lab, &node, network, &format!("{}-{index}", node.name()))?);
        }
        Ok(Self { networks, sandboxes, node })
    }

    /// The times of an ADD and of a DEL among all.
    fn once_more(&self, lab: &Lab, round: usize) -> Result<(Duration, Duration)> {
        let network = self.networks.last().context("a node has a network")?;
        let sandbox =
            Sandbox::start(lab, &self.node, network, &format!("{}-more-{round}", self.node.name()))?;
        let deleted = sandbox.delete(&self.node, network)?;
        Ok((sandbox.attachment().took, deleted))
    }

    fn facts(&mut self, screen: &mut Screen) -> Result<Vec<Fact>> {
        let size = self.sandboxes.len();
        let resident = self.status_number("VmRSS:")?;
        screen.progress(0.0, "the agent does nothing", Some(SETTLING + IDLE));
        std::thread::sleep(SETTLING);
        between_ticks()?;
        let before = Threads::of(self.agent()?)?;
        std::thread::sleep(IDLE);
        let done = Threads::of(self.agent()?)?.since(&before);
        let woken = done.sleeps as f64 / IDLE.as_secs_f64();
        let share = done.ran.as_secs_f64() / IDLE.as_secs_f64();
        self.node.agent_mut().kill()?;
        let begun = Instant::now();
        self.node.restart_agent()?;
        let adopted = milliseconds(begun.elapsed());
        let fact = |name: &str, title: &str, value: f64, unit: &str, limit| Fact {
            name: name.to_owned(),
            title: format!("{title}, {size} attachments"),
            value,
            unit: unit.to_owned(),
            limit,
        };
        Ok(vec![
            fact("agent-resident", "agent's memory", resident, "KiB", Some(RESIDENT_KIB)),
            fact("agent-wake-ups", "agent's wake-ups when idle", woken, "1/s", Some(WAKE_UPS)),
            fact(
                "agent-idle",
                "agent's time when idle, of a processor",
                100.0 * share,
                "%",
                Some(IDLE_SHARE),
            ),
            fact("agent-restart", "kill -9 until the next agent answers", adopted, "ms", None),
        ])
    }

    fn agent(&self) -> Result<u32> {
        self.node.agent().id().context("the agent runs")
    }

    /// A number of the agent's `/proc/PID/status`.
    fn status_number(&self, key: &str) -> Result<f64> {
        number(&format!("/proc/{}/status", self.agent()?), key)
    }
}

/// Waits for the middle of a second: the agent's tick is at its beginning, so that whole seconds have one each.
pub(crate) fn between_ticks() -> Result<()> {
    let uptime = std::fs::read_to_string("/proc/uptime").context("read /proc/uptime")?;
    let uptime: f64 =
        uptime.split(' ').next().unwrap_or_default().parse().context("the time since the boot")?;
    std::thread::sleep(Duration::from_secs_f64((1.5 - uptime.fract()) % 1.0));
    Ok(())
}

/// A number of a file like `/proc/PID/status`.
pub(crate) fn number(path: &str, key: &str) -> Result<f64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("{key} in {path}"))
}
