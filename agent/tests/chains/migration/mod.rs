//! Nodes that change from another project's plugins to shunt and back, under containers that live on: the tests of the migration guides.
//!
//! Each begins with the other plugins alone. Conversations of every kind that were begun then go on through the change, while new
//! containers come and old ones go, and through the way back. In the end there is nothing of anybody's.

mod flannel;
mod living;
mod nomad;
mod reference;

use std::path::PathBuf;

use serde_json::{Value, json};
use shunt_lab::{Inventory, Network, Sandbox};

use self::living::{LIVING_PORT, Living};
use crate::adopt::{adopt, remember};
use crate::drop_in::{DropIn, assert_masqueraded, host_port, text};
use crate::portmap::HOST_PORT;
use crate::stage::{PORT, Stage};

/// The node's port that leads to [`LIVING_PORT`].
const LIVING_HOST_PORT: u16 = 8090;

/// The node's port that leads to a container of shunt's.
const NEW_HOST_PORT: u16 = 8081;

/// Node's ports, each with a container's.
type Ports<'a> = &'a [(u16, u16)];

/// A node before its migration.
struct Migration<'a> {
    stage: Stage,
    drop_in: DropIn,
    /// The other project's configuration, for a container with these host ports.
    network: &'a dyn Fn(&Stage, &DropIn, Ports<'_>) -> Network,
    cache: PathBuf,
    before: Inventory,
}

/// Old containers: two that talk, and one that is the first to go.
struct Old {
    server: Sandbox,
    client: Sandbox,
    first: Sandbox,
}

impl<'a> Migration<'a> {
    /// A node of the other plugins, whose bridged packets meet the rules of IP, as in every cluster. Who is outside knows no container.
    fn begin(network: &'a dyn Fn(&Stage, &DropIn, Ports<'_>) -> Network) -> Option<Self> {
        let mut stage = Stage::set_by("filters = \"auto\"")?;
        stage.node.agent_mut().terminate().unwrap();
        stage.outside.command("ip", &["route", "del", "default"]).unwrap();
        stage.node.namespace().sysctl("net/bridge/bridge-nf-call-iptables", "1").unwrap();
        let drop_in = DropIn::before(&stage);
        let cache = stage.lab.directory("cache").unwrap();
        let before = stage.before(&network(&stage, &drop_in, &[(HOST_PORT, PORT)]));
        Some(Self { stage, drop_in, network, cache, before })
    }

    fn network(&self, ports: Ports<'_>) -> Network {
        (self.network)(&self.stage, &self.drop_in, ports)
    }

    /// A container of whoever has the names now.
    fn add(&self, id: &str, network: &Network) -> Sandbox {
        let sandbox = self.stage.start(network, id);
        remember(&self.cache, network, &sandbox);
        sandbox
    }

    fn served(&self) -> Network {
        self.network(&[(HOST_PORT, PORT), (LIVING_HOST_PORT, LIVING_PORT)])
    }

    /// `first` has a network of its own, with limits.
    fn old(&self, first: &Network) -> Old {
        let server = self.add("server", &self.served());
        let client = self.add("client", &self.network(&[]));
        Old { server, client, first: self.add("first", first) }
    }

    /// Installs shunt, starts its agent and adopts what runs.
    fn change(&mut self, living: &mut Living) {
        let Self { stage, drop_in, cache, .. } = self;
        let adopted = living.meanwhile("the change to shunt", || {
            drop_in.install_by_agent(stage);
            stage.node.restart_agent().unwrap();
            adopt(stage, cache, &[])
        });
        assert!(adopted.status.success(), "{}\n{}", text(&adopted), stage.node.agent().log_tail());
        assert_eq!(stage.node.agent().status().unwrap().attachments, 3, "{}", text(&adopted));
    }

    /// A container of shunt's beside the old ones: an address of its own, and everybody reaches everybody.
    fn new_beside(&self, old: &Old) -> Sandbox {
        let stage = &self.stage;
        let new = self.add("new", &self.network(&[(NEW_HOST_PORT, PORT)]));
        for sandbox in [&old.server, &old.client, &old.first] {
            assert!(!sandbox.addresses().contains(&new.addresses()[0]), "{:?}", new.addresses());
        }
        assert_eq!(stage.node.agent().status().unwrap().attachments, 4);
        self.assert_all_served(old, &new);
        // Others' rules are asked for each flow once a lease: the rest is fast.
        for (client, server) in [(&old.client, &old.server), (&old.client, &new), (&new, &old.server)] {
            let [fast, all] = stage.fast_of(client, server);
            assert!(fast * 100 >= all * 80, "{fast} of {all} from {} to {}", client.id(), server.id());
        }
        new
    }

    fn assert_all_served(&self, old: &Old, new: &Sandbox) {
        let stage = &self.stage;
        stage.assert_talk(&old.client, new);
        stage.assert_talk(&old.client, &old.server);
        for (server, port) in [(&old.server, HOST_PORT), (new, NEW_HOST_PORT)] {
            for namespace in [&stage.outside, stage.node.namespace(), old.client.namespace()] {
                stage.assert_served(namespace, server, host_port(port));
            }
        }
        [&old.client, new].into_iter().for_each(|from| assert_masqueraded(stage, from.namespace()));
    }

    /// Deletes an old container as the runtime does, now that the names are shunt's.
    fn delete(&self, sandbox: &Sandbox, network: &Network) {
        let stage = &self.stage;
        stage.remove(network, sandbox);
        let node = stage.node.namespace();
        let saved = node.command("iptables-save", &[]).unwrap();
        let address = sandbox.addresses()[0].to_string();
        for trace in [format!("\"{}\\\"", sandbox.id()), format!("{address}/32")] {
            assert!(!saved.contains(&trace), "{trace} in {saved}");
        }
        let leases = stage.node.inventory().unwrap();
        assert!(!leases.has(&format!("lease {}/{address}", network.name())), "{leases:?}");
        let ifbs = node.command("ip", &["-oneline", "link", "show", "type", "ifb"]).unwrap();
        assert_eq!(ifbs.lines().count(), 0, "{ifbs}");
        let attached = stage.node.agent().ports().unwrap();
        assert!(attached.iter().all(|port| port.container != sandbox.id()), "{attached:?}");
    }

    /// Takes shunt off, under all containers, and has the other plugins delete them.
    fn go_back(self, mut living: Living, old: &Old, new: &Sandbox) {
        let output = living.meanwhile("the way back", || self.drop_in.uninstall(&self.stage, &[]));
        assert!(output.status.success(), "{}", text(&output));
        self.drop_in.assert_gone(&self.stage);
        self.assert_all_served(old, new);
        drop(living);
        let [plain, served] = [self.network(&[]), self.served()];
        self.stage.remove(&self.network(&[(NEW_HOST_PORT, PORT)]), new);
        self.stage.remove(&plain, &old.client);
        self.stage.remove(&served, &old.server);
        let left = self.stage.node.inventory().unwrap().since(&self.before);
        assert_eq!(left, Vec::<String>::new());
    }

    /// There and back.
    fn goes_there_and_back(mut self, first: &Network, in_between: impl FnOnce(&Stage, &Old)) {
        let old = self.old(first);
        let mut living = Living::begin(&self.stage, &old.client, &old.server, host_port(LIVING_HOST_PORT));
        self.change(&mut living);
        in_between(&self.stage, &old);
        let new = self.new_beside(&old);
        living.go_on("beside new containers");
        self.delete(&old.first, first);
        living.go_on("after another one was deleted");
        self.go_back(living, &old, &new);
    }
}

const GUIDES: &str = include_str!("../../../../docs/migration.md");

/// The list that the guide has under this name.
fn documented(name: &str) -> Value {
    let begins = GUIDES.match_indices("{ \"cniVersion\"");
    let lists = begins.map(|(at, _)| {
        let mut lists = serde_json::Deserializer::from_str(&GUIDES[at..]).into_iter::<Value>();
        lists.next().unwrap().unwrap()
    });
    lists.into_iter().find(|list| list["name"] == name).unwrap()
}

/// A network by the guide's list: with the node's agent and leases, and what the runtime asks of a container.
fn network(mut list: Value, stage: &Stage, drop_in: &DropIn, ports: Ports<'_>) -> Network {
    for plugin in list["plugins"].as_array_mut().unwrap() {
        plugin["agentSocket"] = json!(stage.node.agent().socket());
        if plugin["ipam"].is_object() {
            plugin["ipam"]["dataDir"] = json!(stage.node.leases());
        }
        if plugin["capabilities"]["portMappings"] == true {
            plugin["runtimeConfig"] = json!({ "portMappings": port_mappings(ports) });
        }
    }
    Network::of_list(&list, &drop_in.bin_dir)
}

/// What a runtime asks `portmap` for.
fn port_mappings(ports: Ports<'_>) -> Value {
    let mapping = |(host, container): &(u16, u16), protocol: &str| json!({ "hostPort": host, "containerPort": container, "protocol": protocol });
    let both = |port| ["tcp", "udp"].map(|protocol| mapping(port, protocol));
    Value::Array(ports.iter().flat_map(both).collect())
}
