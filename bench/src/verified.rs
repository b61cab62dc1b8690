//! What the verifier makes of the agent's programs on this kernel.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use aya::programs::loaded_programs;
use shunt_lab::{Lab, Node, Sandbox};

use crate::results::Fact;

/// The verifier gives up after a million instructions.
const LIMIT: f64 = 1_000_000.0;

/// Instructions that the verifier walked, by program, on a node with one container.
pub(crate) fn measure(lab: &Lab) -> Result<Vec<Fact>> {
    let node = Node::start(lab, "verified")?;
    let network = node.network("verified", "cni0", &["10.76.0.0/24"]);
    let _sandbox = Sandbox::start(lab, &node, &network, "verified-0")?;
    let names: BTreeMap<u32, String> =
        node.agent().status()?.programs.into_iter().map(|program| (program.id, program.name)).collect();
    let mut facts = BTreeMap::new();
    for program in loaded_programs() {
        // Programs of others come and go meanwhile.
        let Ok(program) = program else { continue };
        let Some(name) = names.get(&program.id()) else { continue };
        let walked = program.verified_instruction_count().context("Linux 5.16 counts what it verified")?;
        let fact = Fact {
            name: format!("verified-{name}"),
            title: format!("{name}: instructions that the verifier walked"),
            value: walked.into(),
            unit: String::new(),
            limit: Some(LIMIT),
        };
        facts.insert(name, fact);
    }
    Ok(facts.into_values().collect())
}
