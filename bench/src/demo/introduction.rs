//! A node, its agent, and three containers.

use anyhow::Result;
use shunt_lab::{Inventory, Lab, Network, Node, Sandbox};

use crate::add_del::milliseconds;
use crate::screen::{Paint, Screen, pad, right};

/// Everyone on the stage.
pub(super) struct Cast {
    pub(super) actors: Vec<Sandbox>,
    pub(super) node: Node,
    network: Network,
    empty: Inventory,
}

const NAMES: [&str; 3] = ["web", "api", "database"];

impl Cast {
    /// Starts the node and adds the containers.
    pub(super) fn enter(screen: &mut Screen, lab: &Lab, programs: &mut Vec<u32>) -> Result<Self> {
        screen.heading("A node", "a network namespace of its own; yours is not touched")?;
        let node = Node::start(lab, "node")?;
        let network = node.network("demo", "cni0", &["10.77.0.0/24", "fd77::/64"]);
        let empty = node.inventory()?;
        let mut actors = Vec::new();
        for name in NAMES {
            actors.push(Sandbox::start(lab, &node, &network, name)?);
        }
        let status = node.agent().status()?;
        programs.extend(status.programs.iter().map(|program| program.id));
        let cast = Self { actors, node, network, empty };
        screen.done(&format!(
            "shunt-agent {}, {} BPF programs attached to {} containers and their bridge",
            status.version,
            status.programs.len(),
            status.attachments
        ))?;
        for actor in &cast.actors {
            screen.done(&line(actor))?;
        }
        Ok(cast)
    }

    /// Deletes the containers and says whether anything stayed.
    pub(super) fn leave(self, screen: &mut Screen) -> Result<()> {
        let mut took = 0.0;
        for actor in &self.actors {
            took += milliseconds(actor.delete(&self.node, &self.network)?);
        }
        let left: Vec<_> = self.node.inventory()?.since(&self.empty);
        // The bridge stays, as with the reference plugin: others may have plugged into it.
        let left: Vec<_> = left.into_iter().filter(|line| !line.contains("cni0")).collect();
        let each = took / self.actors.len() as f64;
        screen.line("")?;
        if left.is_empty() {
            return screen.done(&format!(
                "three CNI DELs, {each:.1} ms each: no link, lease, pin or file of theirs stayed"
            ));
        }
        screen.line(&format!("  {} after the DELs: {}", Paint::Bad.on("✗ still there"), left.join(", ")))
    }
}

fn line(actor: &Sandbox) -> String {
    let addresses: Vec<_> = actor.addresses().iter().map(ToString::to_string).collect();
    let took = right(&format!("{:.1} ms", milliseconds(actor.attachment().took)), 8);
    format!(
        "{} {}  {}",
        pad(&Paint::Bold.on(actor.id()), 10),
        pad(&addresses.join("  "), 26),
        Paint::Dim.on(&format!("CNI ADD with IPAM{took}"))
    )
}
