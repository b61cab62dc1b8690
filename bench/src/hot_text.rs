//! `shunt-bench hot-text`: which of the plugin's functions a usual ADD and DEL run, as a script by which the linker puts those
//! together.
//!
//! With each page fault on a program's text the kernel maps up to sixteen pages (`fault_around_bytes`, mm/memory.c), and at the end it
//! takes each of them out again. What an ADD runs is a third of the plugin: spread over all of it, it has every page mapped.

mod functions;
mod script;

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use shunt_lab::{Binaries, Container, Interrupt, Lab, Network, Node, load};

use crate::screen::Screen;
use functions::Functions;

/// Where the script goes.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The linker's script, which is written anew
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Steps through the calls, the most frequent first, and writes the script. It takes two minutes.
pub(crate) fn run(screen: &mut Screen, interrupt: &Interrupt, options: &Options) -> Result<()> {
    let lab = Lab::new()?;
    let mut functions = Functions::of(&Binaries::find()?.plugin())?;
    {
        let node = Node::start(&lab, "hot-text")?;
        let plain = node.network("plain", "plain0", &["10.76.0.0/16"]);
        // So that the plain one comes onto a bridge that is there.
        let neighbour = Container::create(&lab, "neighbour")?;
        let added = plain.add(node.namespace(), &neighbour)?;
        // On one processor, where one thread does everything: only the first is stepped through.
        thread::scope(|scope| {
            let alone = scope.spawn(|| {
                load::pin(load::cpus()?.first().copied().context("a processor to run on")?)?;
                record(screen, interrupt, &lab, &node, &plain, &mut functions)
            });
            alone.join().unwrap_or_else(|panic| resume_unwind(panic))
        })?;
        plain.del(node.namespace(), &neighbour, &added.result)?;
        record(screen, interrupt, &lab, &node, &whole(&node), &mut functions)?;
    }
    let text = script::write(functions.visited());
    std::fs::write(&options.out, text).with_context(|| format!("write {}", options.out.display()))?;
    screen.line(&format!("  {} functions in {}", functions.visited().count(), options.out.display()))
}

/// A network with all that runtimes' own configurations ask for: both families, `ipMasq`, a host port and limits.
fn whole(node: &Node) -> Network {
    let limits = json!({ "ingressRate": 8_000_000, "ingressBurst": 80_000, "egressRate": 8_000_000, "egressBurst": 80_000 });
    let mappings = json!([{ "hostPort": 8080, "containerPort": 80, "protocol": "tcp" }]);
    node.network("whole", "whole0", &["10.77.0.0/16", "fd77::/64"])
        .with("ipMasq", json!(true))
        .with("runtimeConfig", json!({ "portMappings": mappings, "bandwidth": limits }))
}

/// An ADD and its DEL.
fn record(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    node: &Node,
    network: &Network,
    functions: &mut Functions,
) -> Result<()> {
    let container = Container::create(lab, &format!("stepped-{}", network.name()))?;
    let mut result = Value::Null;
    for verb in ["ADD", "DEL"] {
        interrupt.check()?;
        screen.line(&format!("  {verb} of the network {}, one instruction at a time", network.name()))?;
        let visit = |address| functions.visit(address);
        result = network.step(verb, node.namespace(), &container, &result, visit)?;
    }
    Ok(())
}
