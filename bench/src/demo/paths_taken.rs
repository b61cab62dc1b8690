//! Which way the packets went, by the programs' own counters.

use anyhow::{Context, Result};

use super::introduction::Cast;
use crate::screen::{Paint, Screen, bar, pad, right, thousands};

/// One line a container, and the drops if there are any.
pub(super) fn show(screen: &mut Screen, cast: &Cast) -> Result<()> {
    let agent = cast.node.agent();
    let ports = agent.ports()?;
    screen.heading("Which way their packets went", "counted in the kernel; a GSO packet counts once")?;
    let title = format!(
        "    {}{}{}{}",
        pad("sent by", 12),
        right("packets", 10),
        right("fast path", 12),
        right("kernel", 10)
    );
    screen.line(&Paint::Dim.on(&title))?;
    for actor in &cast.actors {
        let id = actor.id();
        let port =
            ports.iter().find(|port| port.container == id).with_context(|| format!("no port of {id}"))?;
        let sent = port.from;
        let share = sent.fast as f64 / sent.packets.max(1) as f64;
        let numbers = format!(
            "{}{}{}",
            right(&thousands(sent.packets), 10),
            right(&thousands(sent.fast), 12),
            right(&thousands(sent.kernel), 10)
        );
        let gauge = Paint::Good.on(&bar(share, 24));
        screen.line(&format!("    {}{numbers}   {gauge} {:.1}%", pad(id, 12), share * 100.0))?;
    }
    for drop in agent.drops()?.iter().filter(|drop| drop.packets > 0) {
        let what =
            format!("{}: {}, {} packets on {}", drop.stage, drop.reason, thousands(drop.packets), drop.port);
        screen.line(&format!("    {} {what}", Paint::Bad.on("dropped")))?;
    }
    let why = "The kernel's share: the first ARP and neighbour discovery, and multicast.";
    screen.line(&format!("    {}", Paint::Dim.on(why)))?;
    screen.line("")
}
