//! The demo and the benchmark: shunt against the kernel bridge and a bare wire.

#![forbid(unsafe_code)]

mod add_del;
mod bench;
mod builds;
mod change;
mod comparison;
mod contestant;
mod crowd;
mod demo;
mod header;
mod host_port;
mod limits;
mod many_bridges;
mod memory;
mod nodes;
mod outside;
mod parallel;
mod part;
mod paths;
mod published;
mod ratio;
mod report;
mod results;
mod rounds;
mod rules;
mod screen;
mod table;
mod targets;
mod verified;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shunt_lab::Interrupt;

use crate::screen::{Paint, Screen};

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Three containers talk over the fast path, and what that gains; about a minute, leaves nothing behind
    Demo,
    /// Measure, and write results.json, a report and charts
    Bench(bench::Options),
    /// Measure how well limits are kept, beside the reference plugins
    Limits(limits::Options),
    /// Measure many ADDs at once, beside attachments that are there
    Parallel(parallel::Options),
    /// Measure ADD and DEL of several builds by turns: what a change made of them
    Builds(builds::Options),
}

/// What a shell expects of a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut screen = Screen::open();
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(&mut screen, &error),
    };
    let outcome = match arguments.verb {
        Verb::Demo => demo::run(&mut screen, &interrupt),
        Verb::Bench(options) => bench::run(&mut screen, &interrupt, &options),
        Verb::Limits(options) => limits::run(&mut screen, &interrupt, &options),
        Verb::Parallel(options) => parallel::run(&mut screen, &interrupt, &options),
        Verb::Builds(options) => builds::run(&mut screen, &interrupt, &options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if interrupt.raised() => {
            screen.line(&format!("\n  {}", Paint::Dim.on("Interrupted; everything is cleaned up."))).ok();
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => fail(&mut screen, &error),
    }
}

fn fail(screen: &mut Screen, error: &anyhow::Error) -> ExitCode {
    screen.line(&format!("\n  {} {error:#}", Paint::Bad.on("failed:"))).ok();
    ExitCode::FAILURE
}
