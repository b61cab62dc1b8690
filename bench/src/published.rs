//! A node whose containers have host ports, and a client outside.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use shunt_lab::{Binaries, Container, Lab, Namespace, Network, Node, Path, Sandbox};

use crate::outside::{NODE, join};
use crate::rules;

/// The container's port.
const PORT: u16 = 8080;

/// The first host port; the others follow.
const FIRST: u16 = 20_000;

/// How many mappings one container asks for.
const PER_CONTAINER: u16 = 500;

/// How long the kernel may take to open all host ports.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who maps ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Shunt,
    /// The reference `bridge` and `portmap`, with iptables.
    Reference,
    /// The server is on the node itself.
    Nobody,
}

impl Maker {
    fn name(self) -> &'static str {
        match self {
            Self::Shunt => "shunt",
            Self::Reference => "portmap",
            Self::Nobody => "plain-host",
        }
    }

    /// What a person reads.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Shunt => "shunt",
            Self::Reference => "bridge + portmap",
            Self::Nobody => "a server on the node itself",
        }
    }

    /// A node, whose agent goes by this file where there are both.
    fn node(self, lab: &Lab, name: &str, file: Option<&str>) -> Result<Node> {
        match (self, file) {
            (Self::Shunt, Some(file)) => Node::start_by(lab, name, file),
            (Self::Shunt, None) => Node::start(lab, name),
            (Self::Reference | Self::Nobody, _) => Node::bare(lab, name),
        }
    }
}

/// A node with an uplink, a client behind that, and mappings.
pub(crate) struct Published {
    maker: Maker,
    count: u16,
    sandboxes: Vec<Sandbox>,
    network: Option<Network>,
    outside: Namespace,
    node: Node,
}

impl Published {
    /// One without rules.
    pub(crate) fn prepare(lab: &Lab, maker: Maker, count: u16) -> Result<Self> {
        let node = maker.node(lab, &format!("{}-{count}", maker.name()), None)?;
        Self::on(lab, node, maker, count)
    }

    /// One with an operator's rules, which shunt heeds.
    pub(crate) fn ruled(lab: &Lab, maker: Maker, count: u16) -> Result<Self> {
        let name = format!("{}-ruled-{count}", maker.name());
        let node = maker.node(lab, &name, Some(rules::HEEDED))?;
        rules::load(&node)?;
        let published = Self::on(lab, node, maker, count)?;
        if maker == Maker::Shunt {
            published.wait_for_the_kernel()?;
        }
        Ok(published)
    }

    /// One of a build of shunt, without rules.
    pub(crate) fn of_build(lab: &Lab, name: &str, build: &Binaries, count: u16) -> Result<Self> {
        Self::on(lab, Node::start_of(lab, name, build, &[])?, Maker::Shunt, count)
    }

    fn on(lab: &Lab, node: Node, maker: Maker, count: u16) -> Result<Self> {
        let name = node.name().to_owned();
        let outside = lab.namespace(&format!("{name}-outside"))?;
        join(&node, &outside)?;
        let network = match maker {
            Maker::Shunt => Some(node.network("ports", "cni0", &["10.79.0.0/16"])),
            Maker::Reference => Some(node.reference_network("ports", "cni0", &["10.79.0.0/16"])),
            Maker::Nobody => None,
        };
        let mut published = Self { maker, count, sandboxes: Vec::new(), network, outside, node };
        for begin in (0..count).step_by(PER_CONTAINER.into()) {
            let ports: Vec<u16> =
                (begin..count.min(begin + PER_CONTAINER)).map(|port| FIRST + port).collect();
            let network = published.mapped(&ports)?;
            let id = format!("{name}-{begin}");
            published.sandboxes.push(Sandbox::start(lab, &published.node, &network, &id)?);
        }
        Ok(published)
    }

    /// Waits until the kernel opens all host ports, as it does where rules are heeded.
    fn wait_for_the_kernel(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let mappings = self.node.agent().ask("mappings")?;
            let all = mappings.as_array().context("mappings are a list")?;
            let opened = all.iter().filter(|mapping| mapping["kernel"].as_bool() == Some(true)).count();
            if !all.is_empty() && opened == all.len() {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "{}: the kernel opens {opened} of {} host ports: {}",
                self.node.name(),
                all.len(),
                self.node.agent().log_tail()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What `results.json` calls it.
    pub(crate) fn name(&self) -> &str {
        if self.maps() { self.node.name() } else { self.maker.name() }
    }

    /// What a person reads.
    pub(crate) fn title(&self) -> String {
        match (self.maker, self.count) {
            (Maker::Nobody, _) => self.maker.title().to_owned(),
            (maker, 1) => format!("{}, 1 mapping", maker.title()),
            (maker, count) => format!("{}, {count} mappings", maker.title()),
        }
    }

    /// Whether there is somebody who maps ports.
    pub(crate) fn maps(&self) -> bool {
        self.maker != Maker::Nobody
    }

    /// The network as a runtime asks for it that wants these host ports.
    fn mapped(&self, ports: &[u16]) -> Result<Network> {
        let mapping = |port: &u16| json!({ "hostPort": port, "containerPort": PORT, "protocol": "tcp" });
        let wanted = json!({ "portMappings": ports.iter().map(mapping).collect::<Vec<Value>>() });
        let network = self.network.clone().context("nobody maps ports here")?;
        Ok(match self.maker {
            Maker::Shunt => network.with("runtimeConfig", wanted),
            _ => network.then(json!({ "type": "portmap", "snat": true, "runtimeConfig": wanted })),
        })
    }

    /// To the last of its mappings: where a list is searched, that is its end.
    pub(crate) fn path(&self) -> Result<Path<'_>> {
        let node = IpAddr::from(NODE);
        let Some(last) = self.sandboxes.last() else {
            return Ok(Path::direct(&self.outside, self.node.namespace(), node));
        };
        let address = last.attachment().ipv4()?.into();
        let through = SocketAddr::new(node, FIRST + self.count - 1);
        let direct = Path::direct(&self.outside, last.namespace(), address);
        Ok(Path { port: PORT, through: Some(through), ..direct })
    }

    /// The time of an ADD with a mapping of its own.
    pub(crate) fn one_more(&self, guest: &Container) -> Result<Duration> {
        let network = self.mapped(&[FIRST - 1])?;
        let added = network.add(self.node.namespace(), guest)?;
        network.del(self.node.namespace(), guest, &added.result)?;
        Ok(added.took)
    }
}
