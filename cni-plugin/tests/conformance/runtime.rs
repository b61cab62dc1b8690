//! A container runtime in small: a node, containers, and calls of plugins with whatever environment a test wants.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use shunt_lab::{Inventory, Lab, Namespace};

use crate::books::Bookkeeper;
use crate::served::Service;

/// Debian's reference plugins.
pub(crate) const REFERENCE: &str = "/usr/lib/cni";

/// What a plugin did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// Whether its exit status was 0.
    pub(crate) success: bool,
    /// What it printed, as JSON; null for nothing.
    pub(crate) printed: Value,
    /// The same as it is.
    pub(crate) text: String,
    /// What it printed on standard error.
    pub(crate) complaint: String,
}

impl Outcome {
    /// The result of a call that must succeed.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.success, "{}", self.printed);
        self.printed
    }

    /// The code and message of a call that must fail.
    #[track_caller]
    pub(crate) fn error(self) -> (u64, String) {
        assert!(!self.success, "should have failed: {}", self.printed);
        let text = format!("{} {}", self.printed["msg"].as_str().unwrap(), self.printed["details"]);
        (self.printed["code"].as_u64().unwrap(), text)
    }
}

/// A node with a bookkeeping agent. Dropping it undoes everything.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// Where calls are handed over to, if they are.
    pub(crate) service: Option<Service>,
    pub(crate) agent: Bookkeeper,
    pub(crate) node: Namespace,
    pub(crate) lab: Lab,
    pub(crate) plugins: PathBuf,
}

impl Runtime {
    /// The plugin does the calls; with `SHUNT_TEST_VIA_AGENT` the service.
    pub(crate) fn new() -> Self {
        if std::env::var_os("SHUNT_TEST_VIA_AGENT").is_some() { Self::served() } else { Self::plain() }
    }

    /// The agent's service does the calls.
    pub(crate) fn served() -> Self {
        let plain = Self::plain();
        let service = Service::start(&plain.lab, &plain.node, plain.agent.socket(), &plain.plugins);
        Self { service: Some(service), ..plain }
    }

    /// The plugin does the calls.
    pub(crate) fn plain() -> Self {
        let lab = Lab::new().unwrap();
        let node = lab.namespace("node").unwrap();
        let agent = Bookkeeper::start(lab.root().join("agent.sock"), &node);
        let plugins = lab.directory("plugins").unwrap();
        for name in ["shunt", "shunt-bridge", "bridge", "shunt-ipam", "shunt-portmap", "shunt-bandwidth"] {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_shunt"), plugins.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(Path::new(REFERENCE).join("host-local"), plugins.join("host-local"))
            .unwrap();
        Self { service: None, agent, node, lab, plugins }
    }

    pub(crate) fn container(&self, id: &str) -> Namespace {
        self.lab.namespace(id).unwrap()
    }

    pub(crate) fn leases(&self) -> PathBuf {
        self.lab.root().join("leases")
    }

    /// A network of `type: shunt`, with the built-in IPAM.
    pub(crate) fn network(&self, name: &str) -> Value {
        json!({ "cniVersion": "1.1.0", "name": name, "type": "shunt", "bridge": "br0", "isDefaultGateway": true,
            "ipam": { "type": "shunt-ipam", "ranges": [[{ "subnet": "10.77.0.0/24" }], [{ "subnet": "fd77::/64" }]],
                "dataDir": self.leases() } })
    }

    /// Puts an IPAM plugin into CNI_PATH, `fake-ipam`, that is this shell script; answers a network that asks it.
    pub(crate) fn network_of_ipam(&self, script: &str) -> Value {
        let path = self.plugins.join("fake-ipam");
        std::fs::write(&path, format!("#!/bin/busybox sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        json!({ "cniVersion": "1.1.0", "name": "n1", "type": "shunt", "bridge": "br0", "ipam": { "type": "fake-ipam" } })
    }

    /// The environment of a call for a container of this node; `netns` is its namespace's path.
    pub(crate) fn environment(&self, verb: &str, id: &str) -> Vec<(&'static str, String)> {
        vec![
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", id.to_owned()),
            ("CNI_NETNS", self.lab.root().join(format!("{id}.netns")).display().to_string()),
            ("CNI_IFNAME", "eth0".to_owned()),
            ("CNI_PATH", self.plugins.display().to_string()),
        ]
    }

    /// Calls our plugin.
    pub(crate) fn call(&self, verb: &str, id: &str, config: &Value) -> Outcome {
        self.call_with(&self.environment(verb, id), config.to_string().as_bytes())
    }

    /// Calls our plugin with CNI_ARGS.
    pub(crate) fn call_args(&self, verb: &str, id: &str, arguments: &str, config: &Value) -> Outcome {
        let mut environment = self.environment(verb, id);
        environment.push(("CNI_ARGS", arguments.to_owned()));
        self.call_with(&environment, config.to_string().as_bytes())
    }

    /// Calls our plugin with any environment and any bytes.
    pub(crate) fn call_with(&self, environment: &[(&'static str, String)], input: &[u8]) -> Outcome {
        let service = self.service.as_ref().map(Service::socket);
        let handed = service.and_then(|socket| {
            let mut config: Value = serde_json::from_slice(input).ok()?;
            let object = config.as_object_mut()?;
            object.entry("viaAgent").or_insert(json!(socket));
            Some(config.to_string().into_bytes())
        });
        self.exec(Path::new(env!("CARGO_BIN_EXE_shunt")), environment, handed.as_deref().unwrap_or(input))
    }

    /// Calls a reference plugin.
    pub(crate) fn call_reference(&self, plugin: &str, verb: &str, id: &str, config: &Value) -> Outcome {
        let program = Path::new(REFERENCE).join(plugin);
        self.exec(&program, &self.environment(verb, id), config.to_string().as_bytes())
    }

    /// Runs any plugin on the node.
    pub(crate) fn exec(
        &self,
        program: &Path,
        environment: &[(&'static str, String)],
        input: &[u8],
    ) -> Outcome {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SHUNT_AGENT_SOCKET", self.agent.socket())
            .envs(environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = self.node.enter(|| {
            let mut child = command.spawn().unwrap();
            // A plugin that refuses before it reads closes the pipe.
            drop(child.stdin.take().unwrap().write_all(input));
            child.wait_with_output().unwrap()
        });
        let output = output.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let printed =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON or nothing") };
        assert_ne!(output.status.code(), None, "killed by a signal");
        Outcome {
            success: output.status.success(),
            printed,
            text,
            complaint: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Kills a call for the container c1 somewhere on its way: later and later, until it is quicker than its killer; `look` sees
    /// what each has left after so many microseconds.
    pub(crate) fn kill(&self, verb: &str, network: &Value, look: impl Fn(u32)) {
        for delay in (0..60).map(|step| step * 100) {
            let script = format!(
                "echo '{network}' | {} & pid=$!; busybox usleep {delay}; kill -9 $pid 2>/dev/null; wait",
                env!("CARGO_BIN_EXE_shunt")
            );
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &script]).envs(self.environment(verb, "c1"));
            command.env("SHUNT_AGENT_SOCKET", self.agent.socket()).stdout(Stdio::null());
            self.node.enter(|| command.status().unwrap()).unwrap();
            look(delay);
        }
    }

    /// Links, addresses, rules and leases of the node now, and the agent's books.
    pub(crate) fn inventory(&self) -> Inventory {
        let mut inventory = Inventory::of_namespace(&self.node).unwrap();
        inventory.add_files("lease", &self.leases());
        inventory
    }

    /// Fails unless the node is as it was, but for the round-robin's memory and lock of the IPAM.
    #[track_caller]
    pub(crate) fn assert_nothing_new(&self, before: &Inventory) {
        self.assert_nothing_new_besides(before, &[]);
    }

    /// The same, of a node with these containers.
    #[track_caller]
    pub(crate) fn assert_nothing_new_besides(&self, before: &Inventory, containers: &[&str]) {
        let new = self.inventory().since(before);
        let new: Vec<_> = new.into_iter().filter(|line| !line.contains("last_reserved_ip")).collect();
        assert_eq!(new, Vec::<String>::new());
        let attached: Vec<_> =
            self.agent.with(|books| books.ports.keys().map(|key| key.container.clone()).collect());
        assert_eq!(attached, containers);
    }
}
