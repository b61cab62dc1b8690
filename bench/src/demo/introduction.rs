//! A node, its agent, and three containers.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;
use shunt_lab::{Inventory, Lab, Namespace, Network, Node, Sandbox};

use crate::add_del::milliseconds;
use crate::screen::{Paint, Screen, pad, right};

/// Everyone on the stage.
pub(super) struct Cast {
    pub(super) actors: Vec<Sandbox>,
    pub(super) node: Node,
    /// A host on the node's uplink, which knows no container.
    pub(super) outside: Namespace,
    network: Network,
    empty: Inventory,
}

/// The containers' network's bridge.
const BRIDGE: &str = "cni0";

/// How long the agent may take to tidy up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where the containers' echo servers listen.
pub(super) const PORT: u16 = 7000;

/// The node's port that leads to the first container.
pub(super) const HOST_PORT: u16 = 8080;

/// The node's addresses on its uplink, and those of the host outside, with their prefixes' lengths.
pub(super) const NODE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const OUTSIDE: [&str; 2] = ["192.0.2.9", "2001:db8::9"];
const LENGTHS: [u8; 2] = [24, 64];

const NAMES: [&str; 3] = ["web", "api", "database"];

impl Cast {
    /// Starts the node and adds the containers.
    pub(super) fn enter(screen: &mut Screen, lab: &Lab, programs: &mut Vec<u32>) -> Result<Self> {
        screen.heading("A node", "a network namespace of its own; yours is not touched")?;
        let node = Node::start(lab, "node")?;
        let network = node.network("demo", BRIDGE, &["10.77.0.0/24", "fd77::/64"]);
        let outside = lab.namespace("outside")?;
        node.namespace().pair("up0", &outside, "eth0")?;
        for (namespace, ifname, addresses) in [(node.namespace(), "up0", NODE), (&outside, "eth0", OUTSIDE)] {
            for (address, length) in addresses.into_iter().zip(LENGTHS) {
                give(namespace, ifname, &format!("{address}/{length}"))?;
            }
        }
        let empty = node.inventory()?;
        let mut actors = Vec::new();
        let mapping = json!({ "hostPort": HOST_PORT, "containerPort": PORT, "protocol": "tcp" });
        let datagrams = json!({ "hostPort": HOST_PORT, "containerPort": PORT, "protocol": "udp" });
        let mapped = network.clone().with("runtimeConfig", json!({ "portMappings": [mapping, datagrams] }));
        for (name, network) in NAMES.into_iter().zip([&mapped, &network, &network]) {
            actors.push(Sandbox::start(lab, &node, network, name)?);
        }
        let status = node.agent().status()?;
        programs.extend(status.programs.iter().map(|program| program.id));
        let cast = Self { actors, node, outside, network, empty };
        screen.done(&format!(
            "shunt-agent {}, {} BPF programs attached to {} containers, their bridge, the uplink and the node's sockets",
            status.version,
            status.programs.len(),
            status.attachments
        ))?;
        for actor in &cast.actors {
            screen.done(&line(actor))?;
        }
        Ok(cast)
    }

    /// Deletes the containers and looks whether anything stayed.
    pub(super) fn leave(self, screen: &mut Screen) -> Result<()> {
        let mut took = 0.0;
        for actor in &self.actors {
            took += milliseconds(actor.delete(&self.node, &self.network)?);
        }
        let left = self.left()?;
        let each = took / self.actors.len() as f64;
        if !left.is_empty() {
            bail!("still there after the DELs: {}", left.join(", "));
        }
        screen.line("")?;
        screen
            .done(&format!("three CNI DELs, {each:.1} ms each: no link, lease, pin or file of theirs stayed"))
    }

    /// What stayed. The agent removes pins when it hears from the kernel that a link is gone, a moment after the DEL.
    fn left(&self) -> Result<Vec<String>> {
        let begun = Instant::now();
        loop {
            // The bridge stays, as with the reference plugin: others may have plugged into it.
            let left = self.node.inventory()?.since(&self.empty);
            let left: Vec<_> = left.into_iter().filter(|line| !line.contains(BRIDGE)).collect();
            if left.is_empty() || begun.elapsed() > PATIENCE {
                return Ok(left);
            }
            sleep(Duration::from_millis(20));
        }
    }
}

fn give(namespace: &Namespace, ifname: &str, address: &str) -> Result<()> {
    let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
    let arguments = [&["address", "add", address, "dev", ifname], nodad].concat();
    namespace.command("ip", &arguments).map(drop)
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
