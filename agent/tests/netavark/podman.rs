//! netavark, as podman runs it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use shunt_lab::{Container, Lab, Lacking, Namespace, Node, skip};

/// Of the two networks, their subnets and gateways.
pub(crate) const NETWORKS: [(&str, [&str; 2], [&str; 2]); 2] = [
    ("pods", ["10.77.0.0/24", "fd77::/64"], ["10.77.0.1", "fd77::1"]),
    ("others", ["10.78.0.0/24", "fd78::/64"], ["10.78.0.1", "fd78::1"]),
];

/// netavark on one node, with a driver for all of its networks.
pub(crate) struct Netavark {
    program: PathBuf,
    driver: &'static str,
    config: PathBuf,
    plugins: PathBuf,
    socket: PathBuf,
}

/// None, having said so, where it is not built.
pub(crate) fn program() -> Option<PathBuf> {
    let found = std::env::var_os("SHUNT_NETAVARK").map(PathBuf::from);
    if found.is_none() {
        skip(Lacking::Package("netavark (cargo xtask setup builds it, SHUNT_NETAVARK names it)"));
    }
    found
}

impl Netavark {
    /// With our plugin on a node that has our agent, or with its own bridge driver.
    pub(crate) fn of(lab: &Lab, node: &Node, is_ours: bool) -> Option<Self> {
        let program = program()?;
        let config = lab.directory(&format!("{}-netavark", node.name())).unwrap();
        let (driver, plugins, socket) = if is_ours {
            ("shunt", node.plugins().to_owned(), node.agent().socket().to_owned())
        } else {
            ("bridge", config.clone(), PathBuf::new())
        };
        Some(Self { program, driver, config, plugins, socket })
    }

    /// Runs a verb in the node's namespace; what it printed, or the text of its error.
    pub(crate) fn run(&self, node: &Namespace, words: &[&str], input: &Value) -> Result<Value, String> {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "60"]).arg(&self.program);
        command.args(["--firewall-driver", "nftables", "--aardvark-binary", "/nonexistent"]);
        command.arg("--config").arg(&self.config).arg("--plugin-directory").arg(&self.plugins).args(words);
        command.env("SHUNT_AGENT_SOCKET", &self.socket);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = node
            .enter(|| {
                let mut child = command.spawn()?;
                child.stdin.take().unwrap().write_all(input.to_string().as_bytes())?;
                child.wait_with_output()
            })
            .unwrap()
            .unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        if output.status.success() {
            return Ok(printed);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(printed["error"].as_str().map_or_else(|| complaint.into_owned(), str::to_owned))
    }

    /// A network as `podman network create` makes it, with `more` in it.
    ///
    /// # Errors
    /// The plugin's, or netavark's.
    pub(crate) fn create(&self, node: &Namespace, at: usize, more: &Value) -> Result<Value, String> {
        let (name, subnets, _) = NETWORKS[at];
        let subnets = subnets.map(|subnet| json!({ "subnet": subnet }));
        let mut network = json!({
            "name": name, "id": format!("{at}").repeat(64), "driver": self.driver, "subnets": subnets,
            "ipv6_enabled": true, "internal": false, "dns_enabled": false,
            "network_interface": format!("br{at}"), "ipam_options": { "driver": "host-local" },
        });
        for (key, value) in more.as_object().unwrap() {
            network[key] = value.clone();
        }
        let input = json!({
            "network": network,
            "used": { "interfaces": [], "names": {}, "subnets": [] },
            "options": { "subnet_pools": [], "default_interface_name": "podman", "check_used_subnets": false },
        });
        self.run(node, &["create"], &input)
    }
}

/// A container on a network, as podman says it to `setup` and `teardown`.
pub(crate) fn request(network: &Value, container: &str, ips: &[&str], published: &[Value]) -> Value {
    let name = network["name"].as_str().unwrap();
    json!({
        "container_id": container,
        "container_name": container,
        "port_mappings": published,
        "networks": { name: { "interface_name": "eth0", "static_ips": ips } },
        "network_info": { name: network },
    })
}

/// The path that podman would give.
pub(crate) fn netns(container: &Container) -> &str {
    path(container.namespace().path())
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
