//! `shunt-bench demo`: what shunt does, in about half a minute.

mod comparison;
mod farewell;
mod introduction;
mod paths_taken;
mod talk;

use anyhow::Result;
use shunt_lab::{Interrupt, Lab, Machine};

use crate::demo::introduction::Cast;
use crate::screen::{Paint, Screen};

/// Shows it, cleans up in any case, and looks whether that worked.
pub(crate) fn run(screen: &mut Screen, interrupt: &Interrupt) -> Result<()> {
    let machine = Machine::now();
    screen.line("")?;
    let motto = Paint::Dim.on("the low-resistance path beside the kernel bridge");
    screen.line(&format!("  {}  {motto}", Paint::Bold.on("shunt")))?;
    let lab = Lab::with_all_programs()?;
    let root = lab.root().to_path_buf();
    let mut programs = Vec::new();
    let shown = show(screen, interrupt, &lab, &mut programs);
    drop(lab);
    farewell::verify(screen, &machine, &root, &programs)?;
    shown
}

/// `programs` collects the ids of the BPF programs that are to be gone in the end.
fn show(screen: &mut Screen, interrupt: &Interrupt, lab: &Lab, programs: &mut Vec<u32>) -> Result<()> {
    {
        let cast = Cast::enter(screen, lab, programs)?;
        interrupt.check()?;
        talk::between_containers(screen, interrupt, &cast)?;
        paths_taken::show(screen, &cast)?;
        talk::with_the_node(screen, &cast)?;
        interrupt.check()?;
        talk::by_the_nodes_port(screen, &cast)?;
        cast.leave(screen)?;
    }
    interrupt.check()?;
    comparison::show(screen, interrupt, lab)
}
