//! `cargo xtask`: every command a developer of shunt needs, each in a file of its own.
//!
//! A verb first makes sure that its tools are there (`setup`), so that a fresh clone needs no other step.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is a command line's job")]

mod bench;
mod build;
mod ci;
mod fuzz;
mod image;
mod install;
mod lint;
mod manifests;
mod mutants;
mod package;
mod process;
mod setup;
mod summary;
mod test;
mod uninstall;
mod vm;
mod without_debug;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Build, test, demonstrate, measure and install shunt.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install whatever is missing: BPF toolchain, bpf-linker, the programs that tests use
    Setup,
    /// Build the kernel programs, then target/release/shunt, shunt-agent and shunt-bench
    Build(build::Arguments),
    /// Show it: three containers, an agent, real traffic on the fast path; leaves nothing behind
    Demo(bench::Arguments),
    /// Run every test, the root and namespace ones too, then look for anything left behind
    Test(test::Arguments),
    /// Run the tests that depend on the kernel on other kernels, in emulated machines
    Vm(vm::Arguments),
    /// Measure against the kernel bridge and a bare wire (arguments go to `shunt-bench bench`)
    Bench(bench::Arguments),
    /// Copy the plugin and the agent to where a container runtime looks for them
    Install(install::Arguments),
    /// Make the container image, without a container engine
    Image(image::Arguments),
    /// Make the packages for nodes: .deb, .rpm and a tar file
    Package(package::Arguments),
    /// Render the manifests in deploy/kubernetes from the chart
    Manifests,
    /// Take off this node what `install` and the agent have put there, under running containers
    Uninstall(uninstall::Arguments),
    /// Check formatting, clippy, licences and the house rules
    Lint,
    /// Put faults into the packet's journey, one at a time, and show that a test fails for each
    Mutants(mutants::Arguments),
    /// Fuzz what is read from untrusted sources, guided by coverage
    Fuzz(fuzz::Arguments),
    /// Exactly what CI runs: lint, test, demo
    Ci,
}

/// What a shell expects of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            if process::interrupted() { ExitCode::from(INTERRUPTED) } else { ExitCode::FAILURE }
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    process::outlive_ctrl_c()?;
    match verb {
        Verb::Setup => setup::run(vm::fetch),
        Verb::Build(arguments) => build::chosen(&arguments),
        Verb::Demo(arguments) => bench::run("demo", &arguments),
        Verb::Test(arguments) => test::run(&arguments),
        Verb::Vm(arguments) => vm::run(&arguments),
        Verb::Bench(arguments) => bench::run("bench", &arguments),
        Verb::Install(arguments) => install::run(&arguments),
        Verb::Manifests => manifests::run(),
        Verb::Image(arguments) => image::run(&arguments),
        Verb::Package(arguments) => package::run(&arguments),
        Verb::Uninstall(arguments) => uninstall::run(&arguments),
        Verb::Lint => lint::run(),
        Verb::Mutants(arguments) => mutants::run(&arguments),
        Verb::Fuzz(arguments) => fuzz::run(&arguments),
        Verb::Ci => ci::run(),
    }
}
