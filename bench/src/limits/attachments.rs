//! What a limit costs an ADD, and many of them a node.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};
use shunt_lab::{Container, Interrupt, Lab, Network, Node, Sandbox};

use super::flows::{End, Load};
use super::samples::quantile;

/// ADDs of each kind.
const ROUNDS: usize = 100;

/// A large network: a node may have more containers than a small one has addresses.
const SUBNETS: [&str; 1] = ["10.77.0.0/16"];

/// Bits a second that each is limited to.
const RATE: u64 = 100_000_000;

/// So many of the crowd send for so long, to see whether they are limited.
const SAMPLES: usize = 5;
const SAMPLED: Duration = Duration::from_secs(2);

/// Of the crowd's last ADDs so many are what one takes there.
const LAST: usize = 10;

/// Milliseconds of an ADD, and the median of the rounds' ratios.
#[derive(Debug, Serialize)]
pub(super) struct Added {
    pub(super) limited: f64,
    pub(super) plain: f64,
    pub(super) ratio: f64,
}

/// Milliseconds of an ADD beside so many others.
#[derive(Debug, Serialize)]
pub(super) struct Crowd {
    pub(super) attachments: usize,
    pub(super) last: f64,
    /// What some of them get of their rate, one after the other.
    pub(super) shares: Vec<f64>,
}

fn networks(node: &Node) -> [Network; 2] {
    let plain = node.network("pods", "cni0", &SUBNETS);
    let limits: Value = json!({ "bandwidth": { "ingressRate": RATE, "ingressBurst": RATE / 100, "egressRate": RATE,
        "egressBurst": RATE / 100 } });
    [plain.clone().with("runtimeConfig", limits), plain]
}

/// ADDs with a limit each way, and without, in turns.
pub(super) fn compare(interrupt: &Interrupt) -> Result<Added> {
    let lab = Lab::with_all_programs()?;
    let node = Node::start(&lab, "node")?;
    let networks = networks(&node);
    let containers = [Container::create(&lab, "limited")?, Container::create(&lab, "plain")?];
    let (mut times, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 0..ROUNDS {
        interrupt.check()?;
        let mut took = [0.0; 2];
        // Each is the first one every other time.
        for which in [round % 2, 1 - round % 2] {
            let (network, container) = (&networks[which], &containers[which]);
            let attachment = network.add(node.namespace(), container)?;
            took[which] = attachment.took.as_secs_f64() * 1e3;
            network.del(node.namespace(), container, &attachment.result)?;
        }
        ratios.push(took[0] / took[1]);
        times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
    }
    let [limited, plain] = &mut times;
    Ok(Added {
        limited: quantile(limited, 0.5)?,
        plain: quantile(plain, 0.5)?,
        ratio: quantile(&mut ratios, 0.5)?,
    })
}

/// So many limited containers on one node.
pub(super) fn crowd(interrupt: &Interrupt, attachments: usize) -> Result<Crowd> {
    let lab = Lab::with_all_programs()?;
    let node = Node::start(&lab, "node")?;
    let [network, _] = networks(&node);
    let mut sandboxes = Vec::new();
    for number in 0..attachments {
        interrupt.check()?;
        let sandbox = Sandbox::start(&lab, &node, &network, &format!("c{number}"));
        sandboxes.push(sandbox.with_context(|| format!("the {}th limited container", number + 1))?);
    }
    let last: Vec<_> = sandboxes.iter().rev().take(LAST).collect();
    let took: f64 = last.iter().map(|sandbox| sandbox.attachment().took.as_secs_f64() * 1e3).sum();
    let mut shares = Vec::new();
    for at in (0..attachments.saturating_sub(1)).step_by((attachments / SAMPLES).max(1)) {
        interrupt.check()?;
        let load = Load::start(End::of(&sandboxes[at])?, End::of(&sandboxes[at + 1])?, 1)?;
        let first = load.after(SAMPLED / 4);
        let last = load.after(SAMPLED);
        let bits = 8.0 * (last.bytes - first.bytes) as f64 / (last.at - first.at).as_secs_f64();
        shares.push(bits / RATE as f64);
    }
    Ok(Crowd { attachments, last: took / last.len().max(1) as f64, shares })
}
