//! Pods of two nodes that are joined by a wire: with shunt as the cluster's network, and with what Linux has of its own.
//!
//! The agents know the nodes from the file that they keep for the time when the API server is away (`cluster.json`): there is none here.
//! Everything else is theirs: configuration, routes, VXLAN device.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use shunt_lab::{Lab, Network, Node, Sandbox};

/// Addresses of the nodes on the wire between them.
const NODES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

/// Prefixes of their pods, and what all pods' are in.
const PODS: [&str; 2] = ["10.244.1.0/24", "10.244.2.0/24"];
const ALL_PODS: &str = "10.244.0.0/16";

/// The first address of each: the routes' gateway through a VXLAN device.
const FIRST: [&str; 2] = ["10.244.1.0", "10.244.2.0"];

/// Stations of the VXLAN devices that are made here.
const STATIONS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// What is left of 1500 bytes behind the headers of VXLAN.
const MTU: u32 = 1450;

/// How long the agents may take to make the ways.
const PATIENCE: Duration = Duration::from_secs(20);

/// How packets get from node to node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a route to the other node's address.
    Routes,
    /// Through a VXLAN device.
    Vxlan,
}

/// A pod on each of two nodes.
pub(crate) struct Nodes {
    pub(crate) client: Sandbox,
    pub(crate) server: Sandbox,
    #[allow(dead_code, reason = "they are there as long as this is")]
    nodes: [Node; 2],
}

impl Nodes {
    /// Shunt as the cluster's network.
    pub(crate) fn of_shunt(lab: &Lab, way: Way) -> Result<Self> {
        let names = ["1", "2"].map(|end| format!("shunt-{}-{end}", way.name()));
        let mut nodes = [cluster_node(lab, &names[0], way)?, cluster_node(lab, &names[1], way)?];
        join(&nodes)?;
        nodes.iter().try_for_each(filter)?;
        let members = json!({
            (&names[0]): { "pod_cidrs": [PODS[0]], "addresses": [NODES[0]] },
            (&names[1]): { "pod_cidrs": [PODS[1]], "addresses": [NODES[1]] },
        });
        for node in &mut nodes {
            node.agent_mut().terminate()?;
            fs::write(node.agent().state().join("cluster.json"), members.to_string())?;
            node.restart_agent()?;
        }
        let networks = [written(lab, &nodes[0])?, written(lab, &nodes[1])?];
        Self::attach(lab, nodes, networks)
    }

    /// The reference `bridge` and the kernel's own routes or VXLAN device; `masquerades` with a rule that masquerades what leaves the
    /// cluster, as clusters' networks do, so that connections are tracked, and with kube-proxy's rules for what is forwarded.
    pub(crate) fn of_kernel(lab: &Lab, way: Way, masquerades: bool) -> Result<Self> {
        let name = |end: usize| format!("kernel-{}-{masquerades}-{end}", way.name());
        let nodes = [Node::bare(lab, &name(1))?, Node::bare(lab, &name(2))?];
        join(&nodes)?;
        for own in [0, 1] {
            lead(&nodes[own], way, own)?;
            if masquerades {
                filter(&nodes[own])?;
                let rules = format!(
                    "add table ip masquerading; add chain ip masquerading post {{ type nat hook postrouting priority 100; }}; \
                     add rule ip masquerading post ip saddr {} ip daddr != {ALL_PODS} masquerade",
                    PODS[own]
                );
                nodes[own].namespace().command("nft", &[&rules])?;
            }
        }
        let network = |own: usize| {
            let network = nodes[own].reference_network("pods", "cni0", &[PODS[own]]);
            if way == Way::Vxlan { network.with("mtu", json!(MTU)) } else { network }
        };
        let networks = [network(0), network(1)];
        Self::attach(lab, nodes, networks)
    }

    fn attach(lab: &Lab, nodes: [Node; 2], networks: [Network; 2]) -> Result<Self> {
        let pod = |own: usize| {
            let id = format!("{}-pod", nodes[own].name());
            Sandbox::start(lab, &nodes[own], &networks[own], &id)
        };
        Ok(Self { client: pod(0)?, server: pod(1)?, nodes })
    }
}

impl Way {
    /// What names of comparisons end with.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Routes => "routes",
            Self::Vxlan => "vxlan",
        }
    }

    /// What a person reads.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Routes => "to another node by routes",
            Self::Vxlan => "to another node by VXLAN",
        }
    }

    /// As the agent's key `routes` has it.
    fn setting(self) -> &'static str {
        match self {
            Self::Routes => "host",
            Self::Vxlan => "vxlan",
        }
    }
}

/// A wire between the nodes, with their addresses.
fn join(nodes: &[Node; 2]) -> Result<()> {
    nodes[0].namespace().pair("up0", nodes[1].namespace(), "up0")?;
    for (node, address) in nodes.iter().zip(NODES) {
        node.namespace().command("ip", &["address", "add", &format!("{address}/24"), "dev", "up0"])?;
    }
    Ok(())
}

/// What kube-proxy has in `FORWARD` on every node of a cluster.
fn filter(node: &Node) -> Result<()> {
    let rules = "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; }; \
                 add rule ip filter FORWARD ct state invalid drop; \
                 add rule ip filter FORWARD ct state established,related accept";
    node.namespace().command("nft", &[rules]).map(drop)
}

/// The kernel's own way to the other node's pods.
fn lead(node: &Node, way: Way, own: usize) -> Result<()> {
    let other = 1 - own;
    let ip = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        node.namespace().command("ip", &arguments).map(drop)
    };
    if way == Way::Routes {
        return ip(&format!("route add {} via {}", PODS[other], NODES[other]));
    }
    ip(&format!(
        "link add vxlan0 address {} mtu {MTU} type vxlan id 83 local {} dev up0 dstport 8472 nolearning",
        STATIONS[own], NODES[own]
    ))?;
    ip(&format!("address add {}/32 dev vxlan0", FIRST[own]))?;
    ip("link set vxlan0 up")?;
    ip(&format!("neighbour add {} lladdr {} dev vxlan0 nud permanent", FIRST[other], STATIONS[other]))?;
    let entry = ["fdb", "add", STATIONS[other], "dev", "vxlan0", "dst", NODES[other]];
    node.namespace().command("bridge", &entry)?;
    ip(&format!("route add {} via {} dev vxlan0 onlink", PODS[other], FIRST[other]))
}

/// A node whose agent is the cluster's network, and finds no API server.
fn cluster_node(lab: &Lab, name: &str, way: Way) -> Result<Node> {
    let directory = lab.directory(&format!("{name}-cni"))?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "none",
        "clusters": [{ "name": "none", "cluster": { "server": "http://127.0.0.1:1" } }],
        "users": [{ "name": "none", "user": {} }],
        "contexts": [{ "name": "none", "context": { "cluster": "none", "user": "none" } }],
    });
    fs::write(directory.join("kubeconfig"), kubeconfig.to_string())?;
    let config = format!(
        "[kubernetes]\nkubeconfig = '{}'\nnode = '{name}'\ndra = false\npublish = 'slice'\n\
         [cluster]\nenabled = true\nconflist = '{}'\ncni_bin_dir = '{}'\nroutes = '{}'\n",
        directory.join("kubeconfig").display(),
        conflist(lab, name).display(),
        lab.root().join(format!("{name}-plugins")).display(),
        way.setting(),
    );
    let path = directory.join("agent.toml");
    fs::write(&path, config)?;
    Node::start_with(lab, name, &["--config", path.to_str().context("a path that is text")?])
}

fn conflist(lab: &Lab, name: &str) -> PathBuf {
    lab.root().join(format!("{name}-cni")).join("10-shunt.conflist")
}

/// The network that the node's agent has written, once it has and the way to the other node is there. Leases are the node's.
fn written(lab: &Lab, node: &Node) -> Result<Network> {
    let path = conflist(lab, node.name());
    let begun = Instant::now();
    loop {
        let routes = node.namespace().command("ip", &["route", "show", "proto", "83"])?;
        if let (Some(config), false) = (read(&path), routes.trim().is_empty()) {
            let mut plugin = config["plugins"][0].clone();
            plugin["ipam"]["dataDir"] = json!(node.leases());
            return Ok(Network::new("pods", node.plugins(), plugin));
        }
        ensure!(begun.elapsed() < PATIENCE, "{} has no way to the other node: {routes}", node.name());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
