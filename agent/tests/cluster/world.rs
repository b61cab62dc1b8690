//! Nodes on one link, a host outside on it that knows no way to pods, and what the agents make of them.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use shunt_lab::{Lab, Namespace, Network, Node, Sandbox, patience, uninterrupted};

use crate::server::{ADDRESS, Server};

const PATIENCE: Duration = Duration::from_secs(5);

/// What is expected to happen soon, happens within this time.
const SOON: Duration = Duration::from_secs(20);

/// Addresses of the host outside.
pub(crate) const OUTSIDE: [&str; 2] = ["10.99.0.9", "fd99::9"];

/// A node as the cluster has it.
pub(crate) struct Member {
    pub(crate) node: Node,
    pub(crate) name: &'static str,
    pub(crate) addresses: [String; 2],
    pub(crate) pod_cidrs: [String; 2],
    pub(crate) directory: PathBuf,
}

/// The fields are dropped in order: the server before the namespaces that it listens in.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) members: Vec<Member>,
    pub(crate) outside: Namespace,
    switch: Namespace,
    pub(crate) lab: Lab,
}

impl World {
    /// Nodes `a`, `b` and so on, of which the server knows nothing yet.
    pub(crate) fn new(names: &[&'static str], options: &str) -> Self {
        let lab = Lab::new().unwrap();
        let switch = lab.namespace("switch").unwrap();
        switch.command("ip", &["link", "add", "sw0", "type", "bridge"]).unwrap();
        switch.command("ip", &["link", "set", "sw0", "up"]).unwrap();
        let outside = lab.namespace("outside").unwrap();
        let mut world = Self {
            server: Server::default(),
            sandboxes: Vec::new(),
            members: Vec::new(),
            outside,
            switch,
            lab,
        };
        world.plug(&world.outside, "outside", &OUTSIDE.map(str::to_owned));
        for (number, name) in names.iter().enumerate() {
            world.start(number + 1, name, options);
        }
        world
    }

    fn start(&mut self, number: usize, name: &'static str, options: &str) {
        let directory = self.lab.directory(&format!("{name}-cni")).unwrap();
        let kubeconfig = directory.join("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_text().to_string()).unwrap();
        let config = directory.join("agent.toml");
        let plugins = self.lab.root().join(format!("{name}-plugins"));
        let text = format!(
            "[kubernetes]\nkubeconfig = '{}'\nnode = '{name}'\ndra = false\npublish = 'slice'\n[cluster]\nenabled = true\n\
             conflist = '{}'\ncni_bin_dir = '{}'\n{options}\n",
            kubeconfig.display(),
            directory.join("10-shunt.conflist").display(),
            plugins.display(),
        );
        fs::write(&config, text).unwrap();
        let node = Node::start_with(&self.lab, name, &["--config", config.to_str().unwrap()]).unwrap();
        let addresses = [format!("10.99.0.{number}"), format!("fd99::{number}")];
        let pod_cidrs = [format!("10.244.{number}.0/24"), format!("fd24:0:0:{number}::/64")];
        self.plug(node.namespace(), name, &addresses);
        self.server.listen(node.namespace());
        self.members.push(Member { node, name, addresses, pod_cidrs, directory });
    }

    /// Puts a namespace on the link, by `up0`.
    fn plug(&self, namespace: &Namespace, name: &str, addresses: &[String; 2]) {
        // `ip` takes a short name for the beginning of a keyword.
        let port = format!("to-{name}");
        self.switch.pair(&port, namespace, "up0").unwrap();
        self.switch.command("ip", &["link", "set", &port, "master", "sw0", "up"]).unwrap();
        for (address, length) in addresses.iter().zip(["24", "64"]) {
            let address = format!("{address}/{length}");
            namespace.command("ip", &["address", "add", &address, "dev", "up0", "nodad"]).unwrap();
        }
        namespace.command("ip", &["link", "set", "up0", "up"]).unwrap();
    }

    /// Has the server know a node as it is.
    pub(crate) fn join(&self, index: usize) {
        let Member { name, addresses, pod_cidrs, .. } = &self.members[index];
        let [cidrs, addresses] = [pod_cidrs, addresses].map(|both| both.each_ref().map(String::as_str));
        self.server.nodes().put(name, &cidrs, &addresses);
    }

    /// Starts a pod on a node by the configuration that its agent has written; its index.
    pub(crate) fn pod(&mut self, member: usize, id: &str) -> usize {
        let network = self.members[member].network();
        self.sandboxes.push(Sandbox::start(&self.lab, &self.members[member].node, &network, id).unwrap());
        self.sandboxes.len() - 1
    }

    /// A pod's address of a family.
    pub(crate) fn address(&self, pod: usize, is_v4: bool) -> IpAddr {
        self.sandboxes[pod].addresses().into_iter().find(|ip| ip.is_ipv4() == is_v4).unwrap()
    }
}

impl Member {
    pub(crate) fn conflist(&self) -> PathBuf {
        self.directory.join("10-shunt.conflist")
    }

    /// What the agent has written; nothing while there is none.
    pub(crate) fn written(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.conflist()).ok()?).ok()
    }

    /// The network that it has written, once it has. Leases are the test's own.
    pub(crate) fn network(&self) -> Network {
        self.until("the network configuration is written", || self.written().is_some());
        let written = self.written().unwrap();
        let mut plugin = written["plugins"][0].clone();
        plugin["ipam"]["dataDir"] = json!(self.node.leases());
        Network::new(written["name"].as_str().unwrap(), self.node.plugins(), plugin)
    }

    /// Routes of the agent's, each with its gateway.
    pub(crate) fn routes(&self) -> Vec<String> {
        let of =
            |family| self.node.namespace().command("ip", &[family, "route", "show", "proto", "83"]).unwrap();
        let both = ["-4", "-6"].map(of).concat();
        let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        both.lines().map(words).collect()
    }

    /// The routes to another node's pods, as they should be.
    pub(crate) fn routes_to(other: &Self) -> Vec<String> {
        let both = other.pod_cidrs.iter().zip(&other.addresses);
        both.map(|(pods, node)| format!("{pods} via {node}")).collect()
    }

    pub(crate) fn warns(&self, said: &str) -> bool {
        self.node.agent().status().unwrap().warnings.iter().any(|warning| warning.contains(said))
    }

    /// Waits for what happens soon; the agent's log is in the panic.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            let status = || self.node.agent().ask("status").unwrap_or_default();
            assert!(
                begun.elapsed() < patience(SOON),
                "{}: not so: {what}: {}\n{}\n{:?}",
                self.name,
                status(),
                self.node.agent().log_tail(),
                self.routes()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A kubeconfig of the server as each node reaches it.
fn kubeconfig_text() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "here", "cluster": { "server": format!("http://{ADDRESS}") } }],
        "users": [{ "name": "agent", "user": { "token": "secret" } }],
        "contexts": [{ "name": "it", "context": { "cluster": "here", "user": "agent" } }],
        "current-context": "it",
    })
}

/// Whom `to` in `server` sees when `client` talks to it, by UDP and by TCP.
pub(crate) fn seen(client: &Namespace, server: &Namespace, to: SocketAddr) -> [IpAddr; 2] {
    let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let datagrams = server.enter(|| UdpSocket::bind(to).unwrap()).unwrap();
    let asker = client.enter(|| UdpSocket::bind((any, 0)).unwrap()).unwrap();
    for socket in [&datagrams, &asker] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    asker.send_to(b"who am I?", to).unwrap();
    let (_, from) = uninterrupted(|| datagrams.recv_from(&mut [0; 16])).unwrap();
    datagrams.send_to(b"that one", from).unwrap();
    assert_eq!(uninterrupted(|| asker.recv_from(&mut [0; 16])).unwrap().1, to, "it is answered");
    let listener = server.enter(|| TcpListener::bind(to).unwrap()).unwrap();
    let _stream = client.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
    [from.ip(), listener.accept().unwrap().1.ip()]
}
