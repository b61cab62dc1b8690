//! A node whose reference plugins have been replaced as `install --drop-in` does it, and what `uninstall` leaves of it.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use shunt_lab::{Binaries, Conversation, Echo, Namespace, Network, Protocol};

use crate::stage::{BRIDGE, REFERENCE, Stage, UPLINK};

/// The names that are replaced.
const REPLACED: [&str; 3] = ["bridge", "portmap", "bandwidth"];

/// A plugin that shunt has no part in, which may be beside the reference plugins.
pub(crate) const OTHER: &str = "flannel";

/// A plugin directory of the runtime's, and the agent's beside it.
pub(crate) struct DropIn {
    pub(crate) bin_dir: PathBuf,
    sbin_dir: PathBuf,
    conf_dir: PathBuf,
}

impl DropIn {
    /// The reference plugins alone.
    pub(crate) fn before(stage: &Stage) -> Self {
        let [bin_dir, sbin_dir, conf_dir] =
            ["bin", "sbin", "net.d"].map(|name| stage.lab.directory(name).unwrap());
        for plugin in fs::read_dir(REFERENCE).unwrap().flatten() {
            symlink(plugin.path(), bin_dir.join(plugin.file_name())).unwrap();
        }
        Self { bin_dir, sbin_dir, conf_dir }
    }

    /// Replaces those that shunt replaces, and keeps them.
    pub(crate) fn install(self) -> Self {
        let binaries = Binaries::find().unwrap();
        fs::copy(binaries.plugin(), self.bin_dir.join("shunt")).unwrap();
        self.install_agent();
        for name in REPLACED {
            let path = self.bin_dir.join(name);
            fs::rename(&path, path.with_extension("orig")).unwrap();
            symlink("shunt", path).unwrap();
        }
        symlink("shunt", self.bin_dir.join("shunt-ipam")).unwrap();
        self
    }

    /// The same, by `shunt-agent install-plugin`.
    pub(crate) fn install_by_agent(&self, stage: &Stage) {
        let binaries = Binaries::find().unwrap();
        let mut command = Command::new(binaries.agent());
        command.args(["install-plugin", "--drop-in", "--bin-dir"]).arg(&self.bin_dir);
        command.arg("--state-dir").arg(stage.node.agent().state());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        self.install_agent();
    }

    /// The agent alone.
    pub(crate) fn install_agent(&self) {
        fs::copy(Binaries::find().unwrap().agent(), self.sbin_dir.join("shunt-agent")).unwrap();
    }

    /// Beside them, under names of shunt's own.
    pub(crate) fn install_beside(self) -> Self {
        let binaries = Binaries::find().unwrap();
        fs::copy(binaries.plugin(), self.bin_dir.join("shunt")).unwrap();
        self.install_agent();
        self
    }

    /// Takes away what was kept under a name.
    pub(crate) fn lose(&self, name: &str) {
        fs::remove_file(self.bin_dir.join(name).with_extension("orig")).unwrap();
    }

    /// A network as a node's of the reference plugins, by whichever plugins have the names now.
    pub(crate) fn network(&self, stage: &Stage) -> Network {
        let ipam = json!({
            "type": "host-local",
            "dataDir": stage.node.leases(),
            "ranges": [[{ "subnet": "10.77.0.0/24" }]],
        });
        let config = json!({
            "type": "bridge",
            "bridge": BRIDGE,
            "isDefaultGateway": true,
            "ipMasq": true,
            "hairpinMode": true,
            "agentSocket": stage.node.agent().socket(),
            "ipam": ipam,
        });
        Network::new("pods", &self.bin_dir, config)
    }

    /// `shunt-agent uninstall`, of the copy that was installed.
    pub(crate) fn uninstall(&self, stage: &Stage, more: &[&str]) -> Output {
        let agent = stage.node.agent();
        let mut command = Command::new(self.sbin_dir.join("shunt-agent"));
        command.arg("uninstall").args(more);
        let paths: [(&str, &Path); 6] = [
            ("--socket", agent.socket()),
            ("--state-dir", agent.state()),
            ("--bpffs", agent.bpffs()),
            ("--bin-dir", &self.bin_dir),
            ("--sbin-dir", &self.sbin_dir),
            ("--conf-dir", &self.conf_dir),
        ];
        for (flag, path) in paths {
            command.arg(flag).arg(path);
        }
        stage.node.namespace().enter(|| command.output()).unwrap().unwrap()
    }

    /// Names a plugin in the runtime's configurations.
    pub(crate) fn configure(&self, plugin: &str) {
        fs::write(self.conf_dir.join("10-pods.conf"), json!({ "type": plugin }).to_string()).unwrap();
    }

    /// Files, links and kernel have nothing of ours.
    pub(crate) fn assert_gone(&self, stage: &Stage) {
        self.assert_gone_but(stage, &[]);
    }

    /// The same, where these names were not kept.
    pub(crate) fn assert_gone_but(&self, stage: &Stage, lost: &[&str]) {
        let node = stage.node.namespace();
        let shown = [
            node.command("bpftool", &["net", "show"]).unwrap(),
            node.command("nft", &["list", "tables"]).unwrap(),
            node.command("ip", &["-details", "address", "show"]).unwrap(),
            node.command("iptables-save", &[]).unwrap(),
        ];
        for text in shown {
            assert!(!text.contains("shunt") && !text.contains("from_container"), "{text}");
        }
        let agent = stage.node.agent();
        for path in [agent.socket(), agent.state(), agent.bpffs()] {
            assert!(!path.exists(), "{}", path.display());
        }
        assert!(!agent.socket().with_added_extension("locks").exists());
        assert!(!stage.node.leases().join(".holders").exists());
        assert!(fs::read_dir(&self.sbin_dir).unwrap().next().is_none());
        let mut there: Vec<_> = names(&self.bin_dir);
        let mut expected = names(Path::new(REFERENCE));
        there.retain(|name| name != OTHER);
        expected.retain(|name| !lost.contains(&&**name));
        there.sort();
        expected.sort();
        assert_eq!(there, expected);
        for name in REPLACED.into_iter().filter(|name| !lost.contains(name)) {
            assert_eq!(fs::read_link(self.bin_dir.join(name)).unwrap(), Path::new(REFERENCE).join(name));
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

/// Who is outside does not know the containers' addresses, and answers the node's.
pub(crate) fn assert_masqueraded(stage: &Stage, from: &Namespace) {
    let outside = Echo::listen(&stage.outside, UPLINK[1].parse().unwrap(), 7200).unwrap();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let talk = Conversation::open(from, protocol, outside.address());
        talk.and_then(|mut talk| talk.chat(5, 500)).unwrap_or_else(|error| panic!("{protocol:?}: {error:#}"));
    }
}

/// The address and host port of the node as who is outside asks for it.
pub(crate) fn host_port(port: u16) -> SocketAddr {
    SocketAddr::new(UPLINK[0].parse().unwrap(), port)
}

/// The text of both outputs.
pub(crate) fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

/// How many rules and chains of the reference plugins' there are for containers.
pub(crate) fn container_rules(stage: &Stage) -> Vec<String> {
    let saved = ["iptables-save", "ip6tables-save"];
    let saved = saved.map(|program| stage.node.namespace().command(program, &[]).unwrap());
    let lines = saved.iter().flat_map(|text| text.lines());
    let is_containers = |line: &&str| line.contains("CNI-DN-") || line.contains("name: \\\"");
    lines.filter(is_containers).map(str::to_owned).collect()
}

/// `portmap` with one mapping, for TCP and UDP.
pub(crate) fn portmap(stage: &Stage, host_port: u16, container_port: u16) -> Value {
    let mapping =
        |protocol| json!({ "hostPort": host_port, "containerPort": container_port, "protocol": protocol });
    json!({
        "type": "portmap",
        "agentSocket": stage.node.agent().socket(),
        "capabilities": { "portMappings": true },
        "runtimeConfig": { "portMappings": [mapping("tcp"), mapping("udp")] },
    })
}
