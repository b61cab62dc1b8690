//! Ports of many bridges, described as the plugin would.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use shunt_agent_api::BridgePort;
use shunt_lab::{Lab, Node};

/// A link, as `ip -json` lists it.
#[derive(Deserialize)]
struct Listed {
    ifindex: u32,
    ifname: String,
}

/// So many ports on each of so many bridges, by turns.
pub(super) fn ports(node: &Node, lab: &Lab, bridges: usize, each: usize) -> Result<Vec<BridgePort>> {
    let mut batch = String::new();
    for bridge in 0..bridges {
        writeln!(batch, "link add many{bridge} type bridge")?;
    }
    for number in 0..bridges * each {
        let bridge = number % bridges;
        writeln!(batch, "link add h{number} type veth peer name c{number} address {}", mac(number))?;
        writeln!(batch, "link set h{number} master many{bridge}")?;
    }
    let path = lab.root().join("links");
    std::fs::write(&path, batch)?;
    node.namespace().command("ip", &["-batch", &path.to_string_lossy()])?;
    let listed = node.namespace().command("ip", &["-json", "link", "show"])?;
    let listed: Vec<Listed> = serde_json::from_str(&listed).context("what `ip -json link` printed")?;
    let indexes = listed.into_iter().map(|link| (link.ifname, link.ifindex)).collect();
    (0..bridges * each).map(|number| port(&indexes, bridges, number)).collect()
}

fn mac(number: usize) -> String {
    format!("02:00:00:01:{:02x}:{:02x}", number / 256, number % 256)
}

fn port(indexes: &HashMap<String, u32>, bridges: usize, number: usize) -> Result<BridgePort> {
    let (bridge, on_bridge) = (number % bridges, number / bridges);
    let interface = |name: String| -> Result<Value> {
        let index = indexes.get(&name).with_context(|| format!("no link {name}"))?;
        Ok(json!({ "name": name, "index": index }))
    };
    serde_json::from_value(json!({
        "key": { "network": format!("net{bridge}"), "container": format!("{number:064x}"), "ifname": "eth0" },
        "bridge": interface(format!("many{bridge}"))?,
        "host": interface(format!("h{number}"))?,
        "mac": mac(number),
        "ips": [format!("10.{}.{}.{}", 100 + bridge, on_bridge / 250, 1 + on_bridge % 250)],
        "mtu": 1500,
        "peer_up": false,
    }))
    .context("a port as the plugin describes it")
}
