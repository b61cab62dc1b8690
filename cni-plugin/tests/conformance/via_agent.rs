//! `viaAgent`: what a call says and does is the same whether the plugin does it or has the agent's service do it.

use serde_json::{Value, json};
use shunt_lab::{Inventory, Namespace};

use crate::matrix::{VERBS, VERSIONS};
use crate::runtime::{Outcome, Runtime};

/// Everything that can be seen of a call.
#[derive(Debug, PartialEq)]
struct Seen {
    what: String,
    success: bool,
    /// Standard output, byte by byte.
    printed: String,
    complaint: String,
    /// Links, addresses, routes and rules of the node and of the container, and leases.
    node: Inventory,
    container: Inventory,
    /// What the agent was asked, and what it has attached.
    asked: Vec<String>,
    attached: usize,
}

/// A node with a container that is asked both ways.
struct Stage {
    runtime: Runtime,
    container: Namespace,
    seen: Vec<Seen>,
}

impl Stage {
    /// Looks at what a call has left.
    fn note(&mut self, what: String, outcome: &Outcome) {
        let (asked, attached) = self.runtime.agent.with(|books| (books.verbs.clone(), books.ports.len()));
        let texts = [outcome.text.as_str(), &outcome.complaint].map(|text| self.steady(text, outcome));
        let [printed, complaint] = texts;
        let node = self.runtime.inventory().map(|line| self.steady(line, outcome));
        let container = Inventory::of_namespace(&self.container).unwrap();
        self.seen.push(Seen {
            what,
            success: outcome.success,
            printed,
            complaint,
            node,
            container,
            asked,
            attached,
        });
    }

    /// A text without what differs from run to run: where the lab is, and what the kernel and chance have chosen.
    fn steady(&self, text: &str, outcome: &Outcome) -> String {
        let mut steady = text.replace(&self.runtime.lab.root().display().to_string(), "/run/lab");
        for interface in outcome.printed["interfaces"].as_array().into_iter().flatten() {
            if let Some(mac) = interface["mac"].as_str() {
                steady = steady.replace(mac, "MAC");
            }
        }
        // A host's end: `veth` and eight characters.
        let parts = steady.split("veth").map(str::to_owned).collect::<Vec<_>>();
        let rest = parts[1..].iter().map(|part| part.get(8..).unwrap_or_default());
        parts[..1].iter().map(String::as_str).chain(rest).collect::<Vec<_>>().join("vethXXXXXXXX")
    }

    fn call(&mut self, verb: &str, arguments: &str, config: &Value) -> Outcome {
        let outcome = self.runtime.call_args(verb, "c1", arguments, config);
        self.note(format!("{verb} {arguments} {}", config["cniVersion"]), &outcome);
        outcome
    }
}

/// Does the same both ways and compares what is seen.
fn both(scenario: impl Fn(&mut Stage)) {
    let [plain, served] = [Runtime::plain(), Runtime::served()].map(|runtime| {
        let container = runtime.container("c1");
        let mut stage = Stage { runtime, container, seen: Vec::new() };
        scenario(&mut stage);
        stage.seen
    });
    assert_eq!(plain.len(), served.len());
    for (plain, served) in plain.into_iter().zip(served) {
        assert_eq!(plain, served);
    }
}

const MAC: &str = "MAC=02:00:00:00:00:01";

#[test]
fn results_are_the_same_in_every_version() {
    for version in VERSIONS {
        both(|stage| {
            let mut network = stage.runtime.network("n1");
            network["cniVersion"] = json!(version);
            network["dns"] = json!({ "nameservers": ["192.0.2.53"], "search": ["example.org"] });
            network["ipam"]["routes"] = json!([{ "dst": "192.0.2.0/24", "mtu": 1300 }]);
            network["prevResult"] = stage.call("ADD", MAC, &network).ok();
            stage.call("CHECK", "", &network);
            stage.call("DEL", "", &network).ok();
        });
    }
}

#[test]
fn every_verb_answers_the_same_in_every_version() {
    for version in VERSIONS {
        both(|stage| {
            let mut network = stage.runtime.network("n1");
            network["cniVersion"] = json!(version);
            network["cni.dev/valid-attachments"] = json!([{ "containerID": "c1", "ifname": "eth0" }]);
            let mut result = Value::Null;
            for verb in VERBS {
                network["prevResult"] = if verb == "ADD" { Value::Null } else { result.clone() };
                let outcome = stage.call(verb, MAC, &network);
                if verb == "ADD" && outcome.success {
                    result = outcome.printed;
                }
            }
        });
    }
}

#[test]
fn errors_are_the_same_in_every_version() {
    both(|stage| {
        for version in ["0.1.0", "0.4.0", "1.1.0"] {
            for verb in ["ADD", "CHECK", "GC", "STATUS", "VALIDATE", "INIT", "FINALIZE", "DEL"] {
                let config = json!({ "cniVersion": version, "name": "n1", "type": "bridge", "portIsolation": true,
                    "cni.dev/valid-attachments": 5 });
                stage.call(verb, "", &config);
            }
        }
    });
}

#[test]
fn refusals_of_every_kind_are_the_same() {
    both(|stage| {
        for (key, value) in [
            ("mtu", json!(67)),
            ("bridge", json!("sixteen-letters-")),
            ("ipam", json!({ "type": "nowhere" })),
            ("ipam", json!({ "type": "shunt-ipam" })),
            ("ipamTimeout", json!("soon")),
            ("vlan", json!(5000)),
            ("hairpinMode", json!("yes")),
            ("prevResult", json!({ "cniVersion": "0.2.0", "ip4": {} })),
        ] {
            let mut network = stage.runtime.network("n1");
            network[key] = value;
            for verb in ["ADD", "STATUS", "DEL"] {
                stage.call(verb, "", &network);
            }
        }
        for kind in [shunt_agent_api::ErrorKind::Exists, shunt_agent_api::ErrorKind::Claim] {
            stage.runtime.agent.with(|books| books.refuse_attach = Some(kind));
            let network = stage.runtime.network("n1");
            stage.call("ADD", "", &network);
        }
        let network = stage.runtime.network("n1");
        for arguments in ["K8S_POD_NAME=a", "IP", "MAC=nonsense", "IgnoreUnknown=1;IP=10.77.0.9"] {
            stage.call("ADD", arguments, &network);
        }
    });
}

#[test]
fn bytes_and_environments_that_are_wrong_are_answered_the_same() {
    both(|stage| {
        let environment = stage.runtime.environment("ADD", "c1");
        for input in [
            "",
            "{",
            "[]",
            r#"{"cniVersion":1,"name":"n","type":"shunt"}"#,
            r#"{"cniVersion":"1.0.0","type":"shunt"}"#,
            r#"{"cniVersion":"9.9.9","name":"n","type":"shunt"}"#,
            r#"{"cniVersion":"1.0.0","name":"n","type":"calico"}"#,
        ] {
            let outcome = stage.runtime.call_with(&environment, input.as_bytes());
            stage.note(input.to_owned(), &outcome);
        }
        let network = stage.runtime.network("n1").to_string();
        for (name, value) in [
            ("CNI_COMMAND", "NOTHING"),
            ("CNI_CONTAINERID", "../etc"),
            ("CNI_IFNAME", "a/b"),
            ("CNI_NETNS", ""),
            ("CNI_NETNS", "/nowhere/c1.netns"),
            ("CNI_PATH", ""),
        ] {
            let mut environment = environment.clone();
            environment
                .iter_mut()
                .filter(|(known, _)| *known == name)
                .for_each(|(_, old)| *old = value.to_owned());
            let outcome = stage.runtime.call_with(&environment, network.as_bytes());
            if name != "CNI_NETNS" || value.is_empty() {
                stage.note(format!("{name}={value}"), &outcome);
            }
        }
    });
}

/// Other plugins of a chain, and other types.
#[test]
fn chains_and_other_types_are_the_same() {
    both(|stage| {
        let network = stage.runtime.network("n1");
        let result = stage.call("ADD", MAC, &network).ok();
        let ports = json!([{ "hostPort": 8080, "containerPort": 80, "protocol": "tcp" }]);
        for plugin in [
            json!({ "type": "shunt-portmap", "runtimeConfig": { "portMappings": ports } }),
            json!({ "type": "shunt-bandwidth", "ingressRate": 8_000_000, "ingressBurst": 800_000 }),
            json!({ "type": "loopback" }),
        ] {
            let mut plugin = plugin;
            (plugin["cniVersion"], plugin["name"]) = (json!("1.1.0"), json!("n1"));
            plugin["prevResult"] = result.clone();
            for verb in ["ADD", "CHECK", "DEL"] {
                stage.call(verb, "", &plugin);
            }
        }
        stage.call("DEL", "", &network).ok();
    });
}
