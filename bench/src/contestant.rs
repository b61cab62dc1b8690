//! The paths that are compared. Each is built as its users get it: by real CNI ADDs, but for the bare wire.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use shunt_lab::{BareVeth, Binaries, Daemon, Interrupt, Lab, Namespace, Network, Node, Path, Sandbox};

use crate::crowd::PER_BRIDGE;
use crate::nodes::{Nodes, Way};
use crate::outside::{OUTSIDE, join};
use crate::published::Published;
use crate::rules;
use crate::screen::Screen;

/// A policy of somebody else's that lets everything pass: the shape of a NetworkPolicy engine's.
const POLICY: &str = "table inet engine { chain forward { type filter hook forward priority 0; policy drop; \
    ct state invalid drop; ct state established,related accept; meta l4proto { tcp, udp } accept; }; }";

/// How long programs may take to be replaced.
const PATIENCE: Duration = Duration::from_secs(20);

/// The address range of every contestant's containers; each has a node of its own.
const SUBNET: &str = "10.77.0.0/24";

/// A path between two ends under a name.
pub(crate) struct Contestant {
    /// What `results.json` calls it.
    pub(crate) name: String,
    /// What a person reads.
    pub(crate) title: String,
    ends: Ends,
}

enum Ends {
    Alone(Namespace),
    Bare(BareVeth),
    Attached(Box<Attached>),
    Apart(Box<Nodes>),
    Leaving(Box<Leaving>),
    Published(Box<Published>),
}

/// A container on a node, and a host outside that sees the node's address.
struct Leaving {
    client: Sandbox,
    #[allow(dead_code, reason = "it is there as long as this is")]
    node: Node,
    outside: Namespace,
}

/// Two containers on a node, and others that are there too.
struct Attached {
    client: Sandbox,
    server: Sandbox,
    #[allow(dead_code, reason = "they are there as long as this is")]
    others: Vec<Sandbox>,
    /// What else runs there.
    #[allow(dead_code, reason = "it runs as long as this is there")]
    beside: Option<Daemon>,
    node: Node,
    /// Whether the programs are ours, and count.
    counts: bool,
}

impl Contestant {
    fn new(name: &str, title: &str, ends: Ends) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), ends }
    }

    /// A veth pair between two namespaces: the physical limit of this shape.
    pub(crate) fn bare_veth(lab: &Lab) -> Result<Self> {
        let ends = Ends::Bare(BareVeth::build(lab, "bare")?);
        Ok(Self::new("bare-veth", "bare veth pair", ends))
    }

    /// Both ends in one namespace, by its loopback: what the sockets alone cost.
    pub(crate) fn loopback(lab: &Lab) -> Result<Self> {
        let ends = Ends::Alone(lab.namespace("alone")?);
        Ok(Self::new("loopback", "loopback", ends))
    }

    /// Our plugin and our agent.
    pub(crate) fn shunt(lab: &Lab) -> Result<Self> {
        Ok(Self::new("shunt", "shunt", served(lab, Node::start(lab, "shunt")?)?))
    }

    /// The same in packets of more than 64 KiB.
    pub(crate) fn shunt_of_large_packets(lab: &Lab) -> Result<Self> {
        let node = Node::start_by(lab, "shunt-large", "big_tcp = 'auto'")?;
        Ok(Self::new("shunt-large", "shunt, big_tcp = 'auto'", served(lab, node)?))
    }

    /// From a container of ours to a host outside, masqueraded, with this `big_tcp`.
    pub(crate) fn leaving(lab: &Lab, big_tcp: &str) -> Result<Self> {
        let name = format!("leaving-{big_tcp}");
        let node = Node::start_by(lab, &name, &format!("big_tcp = '{big_tcp}'"))?;
        let network = node.network("bench", "cni0", &[SUBNET]);
        let ends = leaving(lab, node, network)?;
        Ok(Self::new(&name, &format!("shunt, big_tcp = '{big_tcp}'"), ends))
    }

    /// The same where an operator has rules: by the reference `bridge` with `ipMasq`, and by shunt, which heeds them.
    pub(crate) fn leaving_ruled(lab: &Lab) -> Result<[Self; 2]> {
        let bridge = Node::bare(lab, "bridge-ruled")?;
        let shunt = Node::start_by(lab, "shunt-ruled", rules::HEEDED)?;
        [&bridge, &shunt].into_iter().try_for_each(rules::load)?;
        let network = bridge.reference_network("bench", "cni0", &[SUBNET]);
        let bridge = Self::new("bridge-ruled", "kernel bridge", leaving(lab, bridge, network)?);
        let network = shunt.network("bench", "cni0", &[SUBNET]);
        Ok([bridge, Self::new("shunt-ruled", "shunt", leaving(lab, shunt, network)?)])
    }

    /// From a host outside to a host port.
    pub(crate) fn published(published: Published) -> Self {
        let (name, title) = (published.name().to_owned(), published.title());
        Self { name, title, ends: Ends::Published(Box::new(published)) }
    }

    /// The same while somebody watches what is dropped.
    pub(crate) fn shunt_watched(lab: &Lab) -> Result<Self> {
        let node = Node::start(lab, "shunt-watched")?;
        let mut ends = served(lab, node)?;
        if let Ends::Attached(attached) = &mut ends {
            attached.beside = Some(watch_drops(lab, &attached.node)?);
        }
        Ok(Self::new("shunt-watched", "shunt, drops watched", ends))
    }

    /// The plugin and the agent of a build.
    pub(crate) fn of_build(lab: &Lab, name: &str, title: &str, build: &Binaries) -> Result<Self> {
        Ok(Self::new(name, title, served(lab, Node::start_of(lab, name, build, &[])?)?))
    }

    /// The same on a node with `size` attachments, of which the two are the last.
    pub(crate) fn crowded(
        screen: &mut Screen,
        interrupt: &Interrupt,
        lab: &Lab,
        (name, title, size): (&'static str, &'static str, usize),
    ) -> Result<Self> {
        let node = Node::start(lab, name)?;
        let network = |index: usize| {
            let (name, bridge) = (format!("n{index}"), format!("cni{index}"));
            node.network(&name, &bridge, &[&format!("10.{}.0.0/16", 100 + index)])
        };
        let mut others = Vec::with_capacity(size);
        for index in 0..size.saturating_sub(2) {
            interrupt.check()?;
            screen.progress(index as f64 / size as f64, &format!("{size} attachments"), None);
            let network = network(index / PER_BRIDGE);
            others.push(Sandbox::start(lab, &node, &network, &format!("{name}-{index}"))?);
        }
        // On one bridge, with those that came last.
        let network = network(size.saturating_sub(1) / PER_BRIDGE);
        let mut attached = attach(lab, node, [&network, &network])?;
        (attached.counts, attached.others) = (true, others);
        Ok(Self::new(name, title, Ends::Attached(Box::new(attached))))
    }

    /// The reference `bridge` plugin on a node whose bridges do not call iptables: the best that a kernel bridge can be.
    pub(crate) fn bridge(lab: &Lab) -> Result<Self> {
        let node = Node::bare(lab, "bridge")?;
        nf_call(&node, "0")?;
        let network = node.reference_network("bench", "cni0", &[SUBNET]);
        let ends = Ends::Attached(Box::new(attach(lab, node, [&network, &network])?));
        Ok(Self::new("bridge", "kernel bridge", ends))
    }

    /// The same where bridged packets meet somebody else's policy.
    pub(crate) fn bridge_policed(lab: &Lab) -> Result<Self> {
        let node = Node::bare(lab, "bridge-policed")?;
        police(&node)?;
        let network = node.reference_network("bench", "cni0", &[SUBNET]);
        let ends = Ends::Attached(Box::new(attach(lab, node, [&network, &network])?));
        Ok(Self::new("bridge-policed", "kernel bridge + a policy", ends))
    }

    /// Our plugin and our agent, which heeds the same policy.
    pub(crate) fn shunt_policed(lab: &Lab) -> Result<Self> {
        let node = Node::start_by(lab, "shunt-policed", "filters = 'heed'")?;
        police(&node)?;
        Ok(Self::new("shunt-policed", "shunt that heeds the policy", served(lab, node)?))
    }

    /// The reference `bridge` with `ipMasq`, and `portmap`: bridge-nf-call-iptables, conntrack and NAT rules, as on a
    /// Kubernetes node.
    pub(crate) fn bridge_iptables(lab: &Lab) -> Result<Self> {
        let ends = translated(lab, "iptables")?;
        Ok(Self::new("bridge-iptables", "kernel bridge + iptables", ends))
    }

    /// The same with the plugins' rules in nftables.
    pub(crate) fn bridge_nftables(lab: &Lab) -> Result<Self> {
        let ends = translated(lab, "nftables")?;
        Ok(Self::new("bridge-nftables", "kernel bridge + nftables", ends))
    }

    /// Pods of two nodes, one way: by the kernel alone, by it with masquerading and rules as in a cluster, and with shunt as the cluster's network.
    pub(crate) fn apart(lab: &Lab, way: Way) -> Result<[Self; 3]> {
        let of = |name, title, nodes| Self::new(name, title, Ends::Apart(Box::new(nodes)));
        let kernel = match way {
            Way::Routes => "kernel bridge and routes",
            Way::Vxlan => "kernel bridge and a VXLAN device",
        };
        Ok([
            of("kernel", kernel, Nodes::of_kernel(lab, way, false)?),
            of(
                "kernel-masquerade",
                "the same with masquerading and kube-proxy's rules",
                Nodes::of_kernel(lab, way, true)?,
            ),
            of("shunt", "shunt", Nodes::of_shunt(lab, way)?),
        ])
    }

    /// Its two ends.
    pub(crate) fn path(&self) -> Result<Path<'_>> {
        match &self.ends {
            Ends::Alone(namespace) => Ok(Path::direct(namespace, namespace, Ipv4Addr::LOCALHOST.into())),
            Ends::Bare(veth) => Ok(veth.path()),
            Ends::Attached(pair) => Path::between(&pair.client, &pair.server),
            Ends::Apart(nodes) => Path::between(&nodes.client, &nodes.server),
            Ends::Leaving(out) => Ok(Path::direct(out.client.namespace(), &out.outside, OUTSIDE.into())),
            Ends::Published(published) => published.path(),
        }
    }

    /// What its containers have sent so far; none where there is no fast path.
    pub(crate) fn sent(&self) -> Result<Option<Sent>> {
        let Ends::Attached(pair) = &self.ends else { return Ok(None) };
        if !pair.counts {
            return Ok(None);
        }
        let ports = pair.node.agent().ports()?;
        let fast = ports.iter().map(|port| port.from.fast).sum();
        let all = ports.iter().map(|port| port.from.fast + port.from.kernel + port.from.dropped).sum();
        Ok(Some(Sent { fast, all }))
    }
}

/// Packets of shunt's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    fast: u64,
    all: u64,
}

impl Sent {
    /// Those since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { fast: self.fast - before.fast, all: self.all - before.all }
    }

    /// The share that took the fast path.
    pub(crate) fn fast_share(self) -> f64 {
        self.fast as f64 / self.all.max(1) as f64
    }
}

fn attach(lab: &Lab, node: Node, networks: [&Network; 2]) -> Result<Attached> {
    let sandbox = |network: &Network, end: &str| {
        let id = format!("{}-{end}", node.name());
        Sandbox::start(lab, &node, network, &id)
    };
    let (client, server) = (sandbox(networks[0], "client")?, sandbox(networks[1], "server")?);
    Ok(Attached { client, server, others: Vec::new(), beside: None, node, counts: false })
}

/// Two containers of a node with our programs.
fn served(lab: &Lab, node: Node) -> Result<Ends> {
    let network = node.network("bench", "cni0", &[SUBNET]);
    let mut attached = attach(lab, node, [&network, &network])?;
    attached.counts = true;
    Ok(Ends::Attached(Box::new(attached)))
}

/// A container on a node whose network is masqueraded, and a host outside.
fn leaving(lab: &Lab, node: Node, network: Network) -> Result<Ends> {
    let outside = lab.namespace(&format!("{}-outside", node.name()))?;
    join(&node, &outside)?;
    let network = network.with("ipMasq", json!(true));
    let client = Sandbox::start(lab, &node, &network, &format!("{}-client", node.name()))?;
    Ok(Ends::Leaving(Box::new(Leaving { client, node, outside })))
}

/// Runs `drops --watch`, and waits until the programs are those that tell.
fn watch_drops(lab: &Lab, node: &Node) -> Result<Daemon> {
    let ids = || -> Result<BTreeSet<u32>> {
        Ok(node.agent().status()?.programs.into_iter().map(|program| program.id).collect())
    };
    let plain = ids()?;
    let mut command = Command::new(Binaries::find()?.agent());
    command.args(["drops", "--watch", "--socket"]).arg(node.agent().socket());
    let watching = Daemon::start(node.namespace(), command, &lab.root().join("watched.log"))?;
    let begun = Instant::now();
    while !ids()?.is_disjoint(&plain) {
        ensure!(begun.elapsed() < PATIENCE, "nobody watches: {}", watching.log_tail());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(watching)
}

/// Two containers with host ports and `ipMasq`, by the reference plugins with this backend.
fn translated(lab: &Lab, backend: &str) -> Result<Ends> {
    let node = Node::bare(lab, backend)?;
    nf_call(&node, "1")?;
    let networks = [8080, 8081].map(|port| {
        let bridge = node.reference_network("bench", "cni0", &[SUBNET]).with("ipMasq", json!(true));
        bridge.with("ipMasqBackend", json!(backend)).then(portmap(port, backend))
    });
    Ok(Ends::Attached(Box::new(attach(lab, node, [&networks[0], &networks[1]])?)))
}

/// Somebody else's policy.
fn police(node: &Node) -> Result<()> {
    nf_call(node, "1")?;
    node.namespace().command("nft", &[POLICY]).map(drop)
}

fn nf_call(node: &Node, value: &str) -> Result<()> {
    node.namespace()
        .sysctl("net/bridge/bridge-nf-call-iptables", value)
        .and_then(|()| node.namespace().sysctl("net/bridge/bridge-nf-call-ip6tables", value))
}

fn portmap(host_port: u16, backend: &str) -> Value {
    let mapping = json!({ "hostPort": host_port, "containerPort": 80, "protocol": "tcp" });
    let wanted = json!({ "portMappings": [mapping] });
    json!({ "type": "portmap", "snat": true, "backend": backend, "runtimeConfig": wanted })
}
