//! `shunt-bench parallel`: many ADDs at once on a node that has attachments, as a node does that starts again.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use shunt_lab::{Attachment, Container, Interrupt, Lab, Network, Node, Sandbox};

use crate::add_del::milliseconds;
use crate::crowd::SETTLING;
use crate::screen::Screen;

/// How much is measured.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// ADDs at once
    #[arg(long, default_value_t = 200)]
    adds: usize,
    /// Attachments that the node has already
    #[arg(long, default_value_t = 300)]
    beside: usize,
    /// How often they are made and taken away again
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Measures.
///
/// # Errors
/// When something is missing or interrupted, and when a call fails.
pub(crate) fn run(screen: &mut Screen, interrupt: &Interrupt, options: &Options) -> Result<()> {
    let lab = Lab::with_all_programs()?;
    let node = Node::start(&lab, "node")?;
    let network = node.network("pods", "cni0", &["10.77.0.0/16"]);
    let mut beside = Vec::new();
    for number in 0..options.beside {
        interrupt.check()?;
        screen.progress(number as f64 / options.beside as f64, "attachments", None);
        beside.push(Sandbox::start(&lab, &node, &network, &format!("beside-{number}"))?);
    }
    let containers = (0..options.adds).map(|number| Container::create(&lab, &format!("c{number}")));
    let containers = containers.collect::<Result<Vec<_>>>()?;
    screen.progress(0.0, "the node settles", Some(SETTLING));
    thread::sleep(SETTLING);
    let setting = format!("ms, exec to exit, beside {} attachments", options.beside);
    screen.heading(&format!("{} ADDs at once", options.adds), &setting)?;
    let mut all = Vec::new();
    for round in 1..=options.rounds {
        interrupt.check()?;
        let begun = Instant::now();
        let added = at_once(&containers, |container| network.add(node.namespace(), container));
        let took = begun.elapsed();
        let (attachments, failures): (Vec<_>, Vec<_>) = added.into_iter().partition(Result::is_ok);
        let attachments: Vec<Attachment> = attachments.into_iter().flatten().collect();
        let times = attachments.iter().map(|attachment| attachment.took).collect();
        screen.line(&format!("    round {round}: {}, all of them {:.0}", said(times), milliseconds(took)))?;
        if let Some(Err(error)) = failures.into_iter().next() {
            return Err(error).context("an ADD failed");
        }
        all.extend(attachments.iter().map(|attachment| attachment.took));
        delete(&network, &node, &containers, &attachments)?;
    }
    screen.line(&format!("    every round: {}", said(all)))?;
    Ok(())
}

/// Does the same for each container, on as many threads.
fn at_once<T: Send>(containers: &[Container], call: impl Fn(&Container) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let calls: Vec<_> = containers.iter().map(|container| scope.spawn(|| call(container))).collect();
        // A thread that panicked has said so.
        calls.into_iter().filter_map(|call| call.join().ok()).collect()
    })
}

fn delete(network: &Network, node: &Node, containers: &[Container], added: &[Attachment]) -> Result<()> {
    if containers.len() != added.len() {
        bail!("{} ADDs for {} containers", added.len(), containers.len());
    }
    for (container, attachment) in containers.iter().zip(added) {
        network.del(node.namespace(), container, &attachment.result)?;
    }
    Ok(())
}

/// The fastest, the median, nine of ten, the slowest.
fn said(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| {
        let at = (times.len().saturating_sub(1) as f64 * share).round() as usize;
        times.get(at).copied().map(milliseconds).unwrap_or_default()
    };
    let [fastest, median, ninth, worst] = [0.0, 0.5, 0.9, 1.0].map(at);
    format!("{fastest:.0} to {worst:.0}, median {median:.0}, p90 {ninth:.0}")
}
