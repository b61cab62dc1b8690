//! A node whose agent serves CNI.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Binaries, Container, Inventory, Lab, Node, patience};

use crate::client::{Asked, Client, given};

/// The group whose members may ask, where the service has one.
pub(crate) const GROUP: &str = "47111";

/// How long something may take that follows a call.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fields are dropped in their order, the lab last.
pub(crate) struct World {
    pub(crate) containers: Vec<Container>,
    pub(crate) node: Node,
    /// The node before its first container.
    empty: Inventory,
    pub(crate) lab: Lab,
}

impl World {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// With more keys of `[api]`.
    pub(crate) fn start_with(keys: &str) -> Self {
        Self::start_in(keys, "")
    }

    /// With more variables in the agent's environment.
    pub(crate) fn start_in(keys: &str, environment: &str) -> Self {
        let lab = Lab::new().unwrap();
        let root = lab.root().display();
        let file = format!(
            "[api]\nsocket = '{root}/cni.sock'\ncni_path = ['{root}/node-plugins', '{root}/foreign']\n\
             cache_dir = '{root}/cache'\nnetns_dirs = ['{root}']\n{keys}\n"
        );
        let path = lab.root().join("agent.toml");
        fs::write(&path, file).unwrap();
        let arguments = ["--config", path.to_str().unwrap()];
        let node = Node::start_of(&lab, "node", &programs(&lab, environment), &arguments).unwrap();
        lab.directory("foreign").unwrap();
        let empty = node.inventory().unwrap();
        Self { containers: Vec::new(), node, empty, lab }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.lab.root().join("cni.sock")
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// shunt's part of a list.
    pub(crate) fn shunt(&self) -> Value {
        json!({
            "type": "shunt", "bridge": "cni0", "isDefaultGateway": true,
            "ipam": { "type": "shunt-ipam", "ranges": [[{ "subnet": "10.78.0.0/16" }]], "dataDir": self.node.leases() }
        })
    }

    /// A list of these plugins.
    pub(crate) fn list(&self, plugins: &[Value]) -> Value {
        json!({ "cniVersion": "1.1.0", "name": "pods", "plugins": plugins })
    }

    /// Makes a container that is asked for by the list of shunt alone.
    pub(crate) fn container(&mut self, id: &str) -> Asked {
        let list = self.list(&[self.shunt()]);
        self.container_of(id, &list)
    }

    pub(crate) fn container_of(&mut self, id: &str, list: &Value) -> Asked {
        self.containers.push(Container::create(&self.lab, id).unwrap());
        Asked::of(given(list), id, self.containers.last().unwrap().namespace().path())
    }

    /// Puts a plugin of another project there.
    pub(crate) fn write_plugin(&self, name: &str, script: &str) {
        let path = self.lab.root().join("foreign").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn cached(&self) -> Vec<String> {
        let entries = fs::read_dir(self.lab.root().join("cache/results")).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What the node has that it had not before its first container, but for the bridge.
    pub(crate) fn left(&self) -> Vec<String> {
        self.node.left_since(&self.empty, PATIENCE, &["cni0"]).unwrap()
    }

    /// Nothing is left of any container, in the node and in the cache.
    pub(crate) fn assert_empty(&self) {
        assert_eq!(self.left(), Vec::<String>::new(), "{}", self.node.agent().log_tail());
        assert_eq!(self.cached(), Vec::<String>::new());
    }
}

/// The programs under test; the agent is a member of the group.
fn programs(lab: &Lab, environment: &str) -> Binaries {
    let (built, own) = (Binaries::find().unwrap(), lab.directory("programs").unwrap());
    symlink(built.plugin(), own.join("shunt")).unwrap();
    let agent = own.join("shunt-agent");
    let script = format!(
        "#!/bin/sh\nexec env {environment} setpriv --groups {GROUP} {} \"$@\"\n",
        built.agent().display()
    );
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, Permissions::from_mode(0o755)).unwrap();
    Binaries::in_directory(&own).unwrap()
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < patience(PATIENCE), "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
