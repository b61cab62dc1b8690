//! Nodes on one link, a host outside on it that knows no way to pods, and what the agents make of them.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
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

/// The router's addresses on the link, and on the one behind it.
pub(crate) const ROUTER: [[&str; 2]; 2] = [["10.99.0.254", "fd99::fe"], ["10.98.0.254", "fd98::fe"]];

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
    pub(crate) switch: Namespace,
    pub(crate) lab: Lab,
}

/// Which of the two links a namespace is on.
#[derive(Clone, Copy)]
enum Link {
    Near = 0,
    Far = 1,
}

impl World {
    /// Nodes `a`, `b` and so on, of which the server knows nothing yet.
    pub(crate) fn new(names: &[&'static str], options: &str) -> Self {
        Self::with_far(names, &[], options)
    }

    /// Some of them on a second link, behind a router that knows no pods.
    pub(crate) fn with_far(near: &[&'static str], far: &[&'static str], options: &str) -> Self {
        let lab = Lab::new().unwrap();
        let switch = lab.namespace("switch").unwrap();
        for (bridge, addresses) in ["sw0", "sw1"].into_iter().zip(ROUTER) {
            switch.command("ip", &["link", "add", bridge, "type", "bridge"]).unwrap();
            switch.command("ip", &["link", "set", bridge, "up"]).unwrap();
            for (address, length) in addresses.iter().zip(["24", "64"]) {
                let address = format!("{address}/{length}");
                switch.command("ip", &["address", "add", &address, "dev", bridge, "nodad"]).unwrap();
            }
        }
        switch.sysctl("net/ipv4/ip_forward", "1").unwrap();
        switch.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
        let outside = lab.namespace("outside").unwrap();
        let mut world = Self {
            server: Server::default(),
            sandboxes: Vec::new(),
            members: Vec::new(),
            outside,
            switch,
            lab,
        };
        world.plug(&world.outside, "outside", &OUTSIDE.map(str::to_owned), Link::Near);
        let near = near.iter().map(|name| (name, Link::Near));
        for (number, (name, link)) in near.chain(far.iter().map(|name| (name, Link::Far))).enumerate() {
            world.start(number + 1, name, options, link);
        }
        world
    }

    /// One more node.
    pub(crate) fn enter(&mut self, name: &'static str) {
        self.start(self.members.len() + 1, name, "", Link::Near);
    }

    fn start(&mut self, number: usize, name: &'static str, options: &str, link: Link) {
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
        let net = 99 - link as usize;
        let addresses = [format!("10.{net}.0.{number}"), format!("fd{net}::{number}")];
        let pod_cidrs = [format!("10.244.{number}.0/24"), format!("fd24:0:0:{number}::/64")];
        self.plug(node.namespace(), name, &addresses, link);
        self.server.listen(node.namespace());
        self.members.push(Member { node, name, addresses, pod_cidrs, directory });
    }

    /// Puts a namespace on a link, by `up0`, with routes to the other one.
    fn plug(&self, namespace: &Namespace, name: &str, addresses: &[String; 2], link: Link) {
        // `ip` takes a short name for the beginning of a keyword.
        let port = format!("to-{name}");
        let bridge = ["sw0", "sw1"][link as usize];
        self.switch.pair(&port, namespace, "up0").unwrap();
        self.switch.command("ip", &["link", "set", &port, "master", bridge, "up"]).unwrap();
        for (address, length) in addresses.iter().zip(["24", "64"]) {
            let address = format!("{address}/{length}");
            namespace.command("ip", &["address", "add", &address, "dev", "up0", "nodad"]).unwrap();
        }
        namespace.command("ip", &["link", "set", "up0", "up"]).unwrap();
        for (both, router) in ["10.98.0.0/15", "fd98::/15"].into_iter().zip(ROUTER[link as usize]) {
            namespace.command("ip", &["route", "add", both, "via", router]).unwrap();
        }
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

    /// Takes shunt off a node; what is said of it.
    pub(crate) fn uninstall(&self, member: usize) -> String {
        let output = self.try_uninstall(member, &[]);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    /// The same, whatever becomes of it.
    pub(crate) fn try_uninstall(&self, member: usize, more: &[&str]) -> Output {
        let a = &self.members[member];
        let bin = std::env::current_exe().unwrap();
        let agent =
            bin.ancestors().skip(1).map(|up| up.join("shunt-agent")).find(|program| program.is_file());
        let agent = std::env::var_os("SHUNT_BIN_DIR")
            .map(|dir| Path::new(&dir).join("shunt-agent"))
            .or(agent)
            .unwrap();
        let mut command = Command::new(agent);
        command.arg("uninstall").args(more).arg("--config").arg(a.directory.join("agent.toml"));
        command.arg("--socket").arg(a.node.agent().socket()).arg("--state-dir").arg(a.node.agent().state());
        command.arg("--bpffs").arg(a.node.agent().bpffs()).arg("--bin-dir").arg(a.node.plugins());
        command.arg("--sbin-dir").arg(self.lab.root()).arg("--conf-dir").arg(&a.directory);
        a.node.namespace().enter(|| command.output().unwrap()).unwrap()
    }

    /// Waits for an event of a node for this reason, whose note says this. Nobody else writes one.
    #[track_caller]
    pub(crate) fn until_told(&self, member: usize, reason: &str, note: &str) {
        let told = || self.server.nodes().told(self.members[member].name, reason);
        self.members[member].until(reason, || told().iter().any(|told| told.contains(note)));
        assert_eq!(told().len(), 1, "{:?}", told());
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

    /// The routes to another node's pods through the VXLAN device, as they should be.
    pub(crate) fn tunnels_to(other: &Self) -> Vec<String> {
        let first = |pods: &String| pods.split('/').next().unwrap().to_owned();
        other.pod_cidrs.iter().map(|pods| format!("{pods} via {}", first(pods))).collect()
    }

    /// Runs `ip` in the node.
    #[track_caller]
    pub(crate) fn ip(&self, arguments: &[&str]) -> String {
        self.node.namespace().command("ip", arguments).unwrap()
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

/// How long a datagram may be on its way, before it is sent again.
const AGAIN: Duration = Duration::from_secs(1);

/// From whom the next datagram comes that is not of `other`, who may have sent twice.
fn heard_but(socket: &UdpSocket, other: SocketAddr) -> SocketAddr {
    loop {
        let (_, from) = uninterrupted(|| socket.recv_from(&mut [0; 16])).unwrap();
        if from != other {
            return from;
        }
    }
}

/// Whom `to` in `server` sees when `client` talks to it, by UDP and by TCP. On a busy machine the kernel gives up finding a neighbour
/// before that has answered, so a datagram is sent again.
pub(crate) fn seen(client: &Namespace, server: &Namespace, to: SocketAddr) -> [IpAddr; 2] {
    let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let datagrams = server.enter(|| UdpSocket::bind(to).unwrap()).unwrap();
    let asker = client.enter(|| UdpSocket::bind((any, 0)).unwrap()).unwrap();
    datagrams.set_read_timeout(Some(AGAIN)).unwrap();
    asker.set_read_timeout(Some(PATIENCE)).unwrap();
    let begun = Instant::now();
    let from = loop {
        asker.send_to(b"who am I?", to).unwrap();
        match uninterrupted(|| datagrams.recv_from(&mut [0; 16])) {
            Ok((_, from)) => break from,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{to} hears nothing: {error}"),
        }
    };
    datagrams.send_to(b"that one", from).unwrap();
    // The neighbour is known by now: the first datagram of a flow is heard.
    let another = client.enter(|| UdpSocket::bind((any, 0)).unwrap()).unwrap();
    datagrams.set_read_timeout(Some(PATIENCE)).unwrap();
    another.send_to(b"and I?", to).unwrap();
    assert_eq!(heard_but(&datagrams, from).ip(), from.ip(), "{to}");
    assert_eq!(uninterrupted(|| asker.recv_from(&mut [0; 16])).unwrap().1, to, "it is answered");
    let listener = server.enter(|| TcpListener::bind(to).unwrap()).unwrap();
    let _stream = client.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
    [from.ip(), listener.accept().unwrap().1.ip()]
}
