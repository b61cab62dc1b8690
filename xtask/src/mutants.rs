//! `cargo xtask mutants`: puts one fault at a time into the dataplane and shows that a test fails for it.
//!
//! This happens in a copy of the checkout with a build directory of its own, `target/mutants`. The faults are data, in
//! the files `…_faults.rs`; one whose text is no longer in the source is an error, so that the list cannot rot.

mod accepting_faults;
mod answering_faults;
mod claim_faults;
mod connection_faults;
mod delivery_faults;
mod fault;
mod guarding_faults;
mod interface_faults;
mod judging_faults;
mod masquerading_faults;
mod program_faults;
mod reading_faults;
mod refusing_faults;
mod scratch;
mod share_faults;
mod translating_faults;
mod trial;
mod vlan_faults;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;

use self::fault::{Fault, Judge};
use self::scratch::Scratch;
use self::trial::Outcome;
use crate::{process, setup};

/// All faults, in the order in which they are tried.
const FAULTS: [&[Fault]; 15] = [
    reading_faults::FAULTS,
    judging_faults::FAULTS,
    guarding_faults::FAULTS,
    answering_faults::FAULTS,
    delivery_faults::FAULTS,
    translating_faults::FAULTS,
    claim_faults::FAULTS,
    connection_faults::FAULTS,
    share_faults::FAULTS,
    accepting_faults::FAULTS,
    masquerading_faults::FAULTS,
    refusing_faults::FAULTS,
    vlan_faults::FAULTS,
    interface_faults::FAULTS,
    program_faults::FAULTS,
];

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only the faults whose name contains this
    name: Option<String>,
    /// Name the faults and what each would do to users, and try none
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = arguments.name.as_deref().unwrap_or_default();
    let faults: Vec<_> =
        FAULTS.iter().copied().flatten().filter(|fault| fault.name.contains(wanted)).collect();
    if faults.is_empty() {
        bail!("no fault's name contains `{wanted}`; `cargo xtask mutants --list` names them all");
    }
    if arguments.list {
        faults.iter().for_each(|fault| println!("{:<28} {}", fault.name, fault.why));
        return Ok(());
    }
    let tools = setup::for_build()?;
    let scratch = Scratch::copy()?;
    let mut unproven = 0;
    for judge in [Judge::Host, Judge::Loaded, Judge::Stepped] {
        let faults: Vec<_> = faults.iter().filter(|fault| fault.judge == judge).collect();
        if !faults.is_empty() {
            expect_sound(&scratch, &tools, judge)?;
        }
        for fault in faults {
            unproven += usize::from(!is_caught(&scratch, &tools, fault)?);
        }
    }
    println!("{} faults, {unproven} not caught", faults.len());
    if unproven > 0 {
        bail!("every fault must be caught by a test");
    }
    Ok(())
}

/// Tests that fail anyway prove nothing.
fn expect_sound(scratch: &Scratch, tools: &setup::Tools, judge: Judge) -> Result<()> {
    eprintln!("mutants: without a fault: {}", judge.name());
    if !matches!(trial::judge(scratch, tools, judge)?, Outcome::Survived) {
        bail!("{} fail without any fault; `cargo xtask test` shows how", judge.name());
    }
    Ok(())
}

/// Tries a fault and prints its line of the table. One that cannot be tried is not caught: the others still are tried.
fn is_caught(scratch: &Scratch, tools: &setup::Tools, fault: &Fault) -> Result<bool> {
    process::check_interrupted()?;
    let started = Instant::now();
    let outcome = trial::with(fault, scratch, tools);
    process::check_interrupted()?;
    let seconds = started.elapsed().as_secs_f32();
    match &outcome {
        Ok(outcome) => println!("{:<28} {outcome} ({seconds:.0} s)", fault.name),
        Err(error) => println!("{:<28} NOT TRIED: {error:#}", fault.name),
    }
    Ok(matches!(outcome, Ok(Outcome::Caught(_) | Outcome::Hung)))
}

impl Judge {
    fn name(self) -> &'static str {
        match self {
            Self::Host => "the tests of the pure code",
            Self::Loaded => "the parity tests of the loaded programs",
            Self::Stepped => "the programs step by step",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace;

    #[test]
    fn every_faults_text_is_in_the_source_once() {
        let rotten: Vec<String> = FAULTS
            .iter()
            .copied()
            .flatten()
            .filter_map(|fault| {
                let text = fs::read_to_string(workspace::root().join(fault.file)).unwrap();
                fault.apply(&text).err().map(|error| error.to_string())
            })
            .collect();
        assert!(rotten.is_empty(), "{}", rotten.join("\n"));
    }
}
