//! A node: a namespace, an agent of its own, and networks that the plugins serve in it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::binaries::REFERENCE;
use crate::{Agent, Binaries, Inventory, Lab, Namespace, Network, cni, patience};

/// How long duplicate address detection may take; it is one probe after at most a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// A node's namespace and its directories.
#[derive(Debug)]
pub struct Node {
    name: String,
    agent: Option<Agent>,
    plugins: Option<PathBuf>,
    home: PathBuf,
    namespace: Namespace,
}

impl Node {
    /// A node without an agent: for the reference plugins.
    ///
    /// # Errors
    /// When the namespace cannot be made.
    pub fn bare(lab: &Lab, name: &str) -> Result<Self> {
        let namespace = lab.namespace(name)?;
        Ok(Self { name: name.to_owned(), agent: None, plugins: None, home: lab.directory(name)?, namespace })
    }

    /// A node with our plugin, and our agent running.
    ///
    /// # Errors
    /// When something is not built or the agent does not start.
    pub fn start(lab: &Lab, name: &str) -> Result<Self> {
        Self::start_with(lab, name, &[])
    }

    /// The same with more arguments for the agent.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start_with(lab: &Lab, name: &str, arguments: &[&str]) -> Result<Self> {
        Self::start_of(lab, name, &Binaries::find()?, arguments)
    }

    /// The same with this configuration file for the agent.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start_by(lab: &Lab, name: &str, file: &str) -> Result<Self> {
        let path = lab.root().join("agent.toml");
        std::fs::write(&path, file)?;
        Self::start_with(lab, name, &["--config", &path.to_string_lossy()])
    }

    /// The same with these very programs.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start_of(lab: &Lab, name: &str, binaries: &Binaries, arguments: &[&str]) -> Result<Self> {
        let mut node = Self::bare(lab, name)?;
        let directory = lab.directory(&format!("{name}-plugins"))?;
        node.plugins = Some(cni::link_plugin(directory, &binaries.plugin())?);
        let mut agent = Agent::prepare(lab, name, &node.home, binaries.agent());
        agent.set_arguments(arguments);
        agent.start(&node.namespace)?;
        node.agent = Some(agent);
        Ok(node)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Its agent.
    ///
    /// # Panics
    /// On a [`Node::bare`].
    #[allow(clippy::expect_used, reason = "which kind of node it is, is written in the program's text")]
    pub fn agent(&self) -> &Agent {
        self.agent.as_ref().expect("this node has an agent")
    }

    /// Its agent, to be killed.
    ///
    /// # Panics
    /// On a [`Node::bare`].
    #[allow(clippy::expect_used, reason = "which kind of node it is, is written in the program's text")]
    pub fn agent_mut(&mut self) -> &mut Agent {
        self.agent.as_mut().expect("this node has an agent")
    }

    /// Starts the agent again, after [`Agent::kill`] or [`Agent::terminate`].
    ///
    /// # Errors
    /// See [`Agent::start`].
    pub fn restart_agent(&mut self) -> Result<()> {
        self.agent.as_mut().map_or(Ok(()), |agent| agent.start(&self.namespace))
    }

    /// The `CNI_PATH` with our plugin under its names.
    ///
    /// # Panics
    /// On a [`Node::bare`].
    #[allow(clippy::expect_used, reason = "which kind of node it is, is written in the program's text")]
    pub fn plugins(&self) -> &Path {
        self.plugins.as_deref().expect("this node has our plugin")
    }

    /// Where its IPAM keeps leases.
    pub fn leases(&self) -> PathBuf {
        self.home.join("leases")
    }

    /// A network of our plugin, `type: shunt` with the IPAM in it, with one range for each of `subnets`.
    ///
    /// # Panics
    /// On a [`Node::bare`].
    pub fn network(&self, name: &str, bridge: &str, subnets: &[&str]) -> Network {
        let config = json!({
            "type": "shunt",
            "bridge": bridge,
            "isDefaultGateway": true,
            "agentSocket": self.agent().socket(),
            "ipam": self.ipam("shunt-ipam", subnets),
        });
        Network::new(name, self.plugins(), config)
    }

    /// The same of the reference plugins, `bridge` and `host-local`.
    pub fn reference_network(&self, name: &str, bridge: &str, subnets: &[&str]) -> Network {
        let ipam = self.ipam("host-local", subnets);
        let config = json!({ "type": "bridge", "bridge": bridge, "isDefaultGateway": true, "ipam": ipam });
        Network::new(name, Path::new(REFERENCE), config)
    }

    fn ipam(&self, kind: &str, subnets: &[&str]) -> Value {
        let ranges: Vec<_> = subnets.iter().map(|subnet| json!([{ "subnet": subnet }])).collect();
        json!({ "type": kind, "ranges": ranges, "dataDir": self.leases() })
    }

    /// Waits until duplicate address detection is done with the node's addresses: before that the kernel sends from
    /// whatever other address it finds, even `::1`, and no answer comes.
    ///
    /// # Errors
    /// When it takes longer than it ever does.
    pub fn settle(&self) -> Result<()> {
        let begun = Instant::now();
        while !self.namespace.command("ip", &["-6", "address", "show", "tentative"])?.trim().is_empty() {
            if begun.elapsed() > patience(PATIENCE) {
                bail!("an address of node {} is still tentative", self.name);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What is in the node now: links, addresses, rules, pins, files.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn inventory(&self) -> Result<Inventory> {
        let mut inventory = Inventory::of_namespace(&self.namespace)?;
        inventory.add_files("lease", &self.leases());
        if let Some(agent) = &self.agent {
            inventory.add_files("state", agent.state());
            inventory.add_pins(agent.bpffs());
        }
        Ok(inventory)
    }

    /// What the node has that it had not at `empty`, before its first container, once the agent has had so long: it removes pins after the kernel's own
    /// news of a link that is gone. Lines with one of `stays` are passed over.
    ///
    /// # Errors
    /// As [`Node::inventory`].
    pub fn left_since(&self, empty: &Inventory, within: Duration, stays: &[&str]) -> Result<Vec<String>> {
        let begun = Instant::now();
        loop {
            let left = self.inventory()?.since(empty);
            let left: Vec<_> =
                left.into_iter().filter(|line| !stays.iter().any(|name| line.contains(name))).collect();
            if left.is_empty() || begun.elapsed() > patience(within) {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
