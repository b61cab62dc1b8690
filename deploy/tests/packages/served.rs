//! Containers on a node, made as a runtime makes them, and their traffic.

use std::process::{Child, Stdio};

use shunt_agent::registry::vlan_gateway;
use shunt_agent_api::Interface;

use crate::node::{Node, text};

/// The network's configuration, where a runtime would look for it.
pub(crate) const NETWORK: &str = "/etc/cni/net.d/10-shunt.conf";

const CONFIGURATION: &str = r#"{ "cniVersion": "1.0.0", "name": "net", "type": "shunt", "bridge": "shunt0", "isGateway": true,
  "ipam": { "type": "shunt-ipam", "ranges": [[{ "subnet": "10.88.0.0/24" }]] } }"#;

/// The containers, whose addresses are 10.88.0.2 and .3.
const CONTAINERS: [&str; 2] = ["one", "two"];

/// Asks from within the first container.
const PING: &str = "nsenter --net=/run/netns/one ping -n -q";

/// Which process asks.
const PROCESS: &str = "/run/ping.pid";

/// A packet each this many seconds.
const PACE: &str = "0.01";

/// Writes down the network.
pub(crate) fn configure(node: &Node) {
    node.run(&format!("cat > {NETWORK} <<'CONF'\n{CONFIGURATION}\nCONF"));
}

/// Calls the plugin for a container.
pub(crate) fn call(verb: &str, container: &str) -> String {
    format!(
        "CNI_COMMAND={verb} CNI_CONTAINERID={container} CNI_NETNS=/run/netns/{container} CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin \
         /opt/cni/bin/shunt < {NETWORK}"
    )
}

/// Makes both containers.
pub(crate) fn start(node: &Node) {
    for container in CONTAINERS {
        node.run(&format!("ip netns add {container}"));
        node.run(&call("ADD", container));
    }
}

/// One packet and its answer.
pub(crate) fn assert_reached(node: &Node) {
    node.run(&format!("{PING} -c 1 -W 5 10.88.0.3"));
}

/// How many packets of the first container have taken the fast path.
pub(crate) fn fast(node: &Node) -> u64 {
    let ports: serde_json::Value = serde_json::from_str(&node.run("shunt-agent ports --json")).unwrap();
    let ports = ports.as_array().unwrap();
    let port = ports.iter().find(|port| port["container"] == "one").unwrap();
    port["from"]["fast"].as_u64().unwrap()
}

/// A network as podman asks for one.
const OF_PODMAN: &str = r#"{ "name": "pods", "id": "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9",
  "driver": "shunt", "subnets": [{ "subnet": "10.89.0.0/24" }] }"#;

/// The files that keep others off the interfaces, and how their patterns are read.
const FILES: [(&str, &str); 3] = [
    ("s/^Name=//p", "/usr/lib/systemd/network/05-shunt.network"),
    ("s/^OriginalName=//p", "/usr/lib/systemd/network/05-shunt.link"),
    (
        "/^unmanaged/{s/^[^=]*=//;s/interface-name://g;s/;/ /g;p}",
        "/usr/lib/NetworkManager/conf.d/90-shunt.conf",
    ),
];

/// The same of gateways of VLANs.
const FILES_OF_GATEWAYS: [(&str, &str); 2] = [
    ("s/^Name=//p", "/usr/lib/systemd/network/05-shunt-gateways.network"),
    ("s/^OriginalName=//p", "/usr/lib/systemd/network/05-shunt-gateways.link"),
];

/// The files that keep others off the interfaces name all of them, those of other nodes too.
pub(crate) fn assert_left_alone(node: &Node) {
    let interfaces = node.run("ls /sys/class/net");
    let made: Vec<_> = interfaces.lines().filter(|name| *name != "lo").collect();
    assert_eq!(made.len(), CONTAINERS.len() + 1, "the hosts' ends and the bridge: {made:?}");
    let network = node.run(&format!("echo '{OF_PODMAN}' | /opt/cni/bin/shunt create"));
    let network: serde_json::Value = serde_json::from_str(&network).unwrap();
    let of_podman = network["network_interface"].as_str().unwrap();
    for file in FILES {
        assert_named(node, file, made.iter().copied().chain([of_podman, "cni0"]));
    }
    let gateways = [("cni0", 26, 10), (of_podman, 0xfff, 4094)].map(|(bridge, index, vid)| {
        let (node_end, port) = vlan_gateway::names(&Interface { name: bridge.to_owned(), index }, vid);
        [node_end, port]
    });
    for file in FILES_OF_GATEWAYS {
        assert_named(node, file, gateways.iter().flatten().map(String::as_str));
        node.run(&format!("grep -q '^Driver=veth$' {}", file.1));
    }
}

/// A file's patterns name the interfaces. A shell's patterns are those of all of them.
fn assert_named<'a>(node: &Node, (script, file): (&str, &str), names: impl Iterator<Item = &'a str>) {
    let patterns = node.run(&format!("sed -n '{script}' {file}"));
    let cases = patterns.split_whitespace().collect::<Vec<_>>().join("|");
    for name in names {
        node.run(&format!("case {name} in {cases}) ;; *) echo {file} lacks {name}; exit 1 ;; esac"));
    }
}

/// Packets that go on while something is done.
pub(crate) struct Flow<'a> {
    node: &'a Node,
    ping: Child,
}

impl<'a> Flow<'a> {
    /// Begins.
    pub(crate) fn begin(node: &'a Node) -> Self {
        let line = format!("echo $$ > {PROCESS}; exec {PING} -i {PACE} -W 2 -w 120 10.88.0.3");
        let ping = node.command(&line).stdout(Stdio::piped()).spawn().unwrap();
        Self { node, ping }
    }

    /// Ends it; every packet was answered.
    pub(crate) fn assert_whole(self, least: u64) {
        self.node.run(&format!("kill -INT $(cat {PROCESS}); rm {PROCESS}"));
        let said = text(&self.ping.wait_with_output().unwrap());
        let count = |word: &str| -> u64 {
            let before = said.split(word).next().unwrap();
            before.rsplit([' ', '\n']).find(|part| !part.is_empty()).unwrap().parse().unwrap()
        };
        let (sent, received) = (count(" packets transmitted"), count(" received"));
        assert!(sent >= least, "{said}");
        // The last one is on its way when it ends.
        assert!(sent - received <= 1, "{said}");
    }
}
