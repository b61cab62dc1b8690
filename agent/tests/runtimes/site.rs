//! A node with our agent and plugin, and a host around it for a runtime.

use std::time::{Duration, Instant};

use serde_json::json;
use shunt_agent_api::PortReport;
use shunt_lab::{Inventory, Lab, Machine, Node, patience};

use crate::host::Host;

/// The network's name.
pub(crate) const NETWORK: &str = "pods";

/// Its gateway, the node's own address on the bridge.
pub(crate) const GATEWAY: &str = "10.88.0.1";

/// How long what the agent does after a DEL may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Fields are dropped in their order: what runs in the node before the node, the lab last.
pub(crate) struct Site {
    pub(crate) host: Host,
    pub(crate) node: Node,
    pub(crate) lab: Lab,
    machine: Machine,
}

impl Site {
    /// Writes the list of plugins that `podman network create` would write, with ours in the place of `bridge`.
    pub(crate) fn prepare() -> Self {
        let machine = Machine::now();
        let lab = Lab::new().unwrap();
        let node = Node::start(&lab, "node").unwrap();
        let host = Host::start(&lab, &node);
        let ipam = json!({
            "type": "shunt-ipam",
            "dataDir": node.leases(),
            "ranges": [[{ "subnet": "10.88.0.0/24", "gateway": GATEWAY }]],
            "routes": [{ "dst": "0.0.0.0/0" }],
        });
        let list = json!({
            "cniVersion": "0.4.0",
            "name": NETWORK,
            "plugins": [
                { "type": "shunt", "bridge": "cni-podman1", "isGateway": true, "ipMasq": true, "hairpinMode": true, "ipam": ipam },
                { "type": "portmap", "capabilities": { "portMappings": true } },
                { "type": "firewall", "backend": "" },
                { "type": "tuning" },
            ],
        });
        host.write("/etc/cni/net.d/10-pods.conflist", &list.to_string());
        Self { host, node, lab, machine }
    }

    /// What the agent reports of the one container whose id ends or begins with `id`.
    pub(crate) fn port(&self, id: &str) -> PortReport {
        let ports = self.node.agent().ports().unwrap();
        let found = ports.iter().find(|port| port.container.starts_with(id) || port.container.ends_with(id));
        found.unwrap_or_else(|| panic!("no port of {id} in {ports:?}\n{}", self.log())).clone()
    }

    fn log(&self) -> String {
        self.node.agent().log_tail()
    }

    /// A container's address, as text.
    pub(crate) fn address(&self, id: &str) -> String {
        self.port(id).ips[0].to_string()
    }

    /// Most of what the container has sent and got went the fast way: eight megabytes there and back, so that the few multicasts and
    /// first packets that are the kernel's weigh little. Nothing was dropped but the container's own group frames (MLD, DAD), which
    /// its port in `hairpinMode` would send back.
    pub(crate) fn assert_fast(&self, id: &str) {
        let port = self.port(id);
        // Asked after the port: a group frame may have come meanwhile.
        let drops = self.node.agent().drops().unwrap();
        let of_port = drops.iter().filter(|drop| drop.port == port.host_ifname);
        let (hairpin, others): (Vec<_>, Vec<_>) = of_port.partition(|drop| drop.reason == "hairpin");
        assert!(others.iter().all(|drop| drop.packets == 0), "{others:?}");
        let returned: u64 = hairpin.iter().map(|drop| drop.packets).sum();
        for (way, dropped) in [(&port.from, 0), (&port.to, returned)] {
            assert!(
                way.fast >= 30 && way.fast > 10 * way.kernel && way.dropped <= dropped,
                "{port:?} {drops:?}"
            );
            assert!(way.bytes > 8_000_000, "{port:?}");
        }
    }

    /// What is on the node, to be compared later. The reference plugins leave their empty chains: look after one
    /// container has come and gone.
    pub(crate) fn inventory(&self) -> Inventory {
        self.node.inventory().unwrap()
    }

    /// Nothing of any container is on the node or in the files of the runtimes, once the agent has had a moment: it removes pins
    /// after the kernel has taken their link away, which keeps nobody's DEL waiting.
    pub(crate) fn assert_clean(&self, before: &Inventory) {
        let begun = Instant::now();
        while !self.inventory().since(before).is_empty() && begun.elapsed() < patience(PATIENCE) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.inventory().since(before), Vec::<String>::new());
        assert_eq!(self.node.agent().status().unwrap().attachments, 0, "{}", self.log());
        let files =
            self.host.files(&["/var/lib/cni", "/run/netns", "/run/containerd/io.containerd.runtime.v2.task"]);
        let left: Vec<_> = files.iter().filter(|file| !file.ends_with("lock")).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Ends it all; nothing of it is left on the machine.
    pub(crate) fn leave(self) {
        let Self { host, node, lab, machine } = self;
        let root = lab.root().to_owned();
        drop(host);
        drop(node);
        drop(lab);
        assert_eq!(machine.leaks(&root), Vec::<String>::new());
    }
}
