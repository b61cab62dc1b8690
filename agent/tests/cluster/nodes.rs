//! The nodes as an API server keeps them: listed, watched, and patched.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::sync::mpsc;

const PATH: &str = "/api/v1/nodes";

/// What is said to a request.
pub(crate) enum Answer {
    Said(u16, String),
    Stream(mpsc::UnboundedReceiver<String>),
}

#[derive(Default)]
pub(crate) struct Nodes {
    /// 403 to everything.
    pub(crate) forbids: bool,
    /// Every patch, by the node's name.
    pub(crate) patches: Vec<(String, Value)>,
    version: u64,
    nodes: BTreeMap<String, Value>,
    watches: Vec<mpsc::UnboundedSender<String>>,
}

impl Nodes {
    /// Adds a node, or changes it.
    pub(crate) fn put(&mut self, name: &str, pod_cidrs: &[&str], addresses: &[&str]) {
        let addresses: Vec<_> =
            addresses.iter().map(|address| json!({ "type": "InternalIP", "address": address })).collect();
        let conditions = json!([{ "type": "NetworkUnavailable", "status": "True" }]);
        let node = json!({
            "kind": "Node", "apiVersion": "v1",
            "metadata": { "name": name },
            "spec": { "podCIDR": pod_cidrs.first(), "podCIDRs": pod_cidrs },
            "status": { "addresses": addresses, "conditions": conditions },
        });
        let kind = if self.nodes.contains_key(name) { "MODIFIED" } else { "ADDED" };
        self.nodes.insert(name.to_owned(), node);
        self.tell(kind, name);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.tell("DELETED", name);
        self.nodes.remove(name);
    }

    /// Ends every watch.
    pub(crate) fn end_watches(&mut self) {
        self.watches.clear();
    }

    fn tell(&mut self, kind: &str, name: &str) {
        self.version += 1;
        let Some(node) = self.nodes.get(name) else { return };
        let line = format!("{}\n", json!({ "type": kind, "object": node }));
        self.watches.retain(|watch| watch.send(line.clone()).is_ok());
    }

    pub(crate) fn answer(&mut self, method: &str, path: &str, query: &str, body: &[u8]) -> Answer {
        if self.forbids {
            return failure(403, "Forbidden");
        }
        let name = path.strip_prefix("/api/v1/nodes/").and_then(|rest| rest.strip_suffix("/status"));
        match (method, name) {
            ("GET", None) if path == PATH && query.contains("watch=true") => {
                let (watch, lines) = mpsc::unbounded_channel();
                self.watches.push(watch);
                Answer::Stream(lines)
            }
            ("GET", None) if path == PATH => {
                let items: Vec<_> = self.nodes.values().collect();
                let metadata = json!({ "resourceVersion": self.version.to_string() });
                let list =
                    json!({ "kind": "NodeList", "apiVersion": "v1", "items": items, "metadata": metadata });
                Answer::Said(200, list.to_string())
            }
            ("PATCH", Some(name)) => self.patch(name, body),
            _ => failure(405, "MethodNotAllowed"),
        }
    }

    /// Conditions are merged by their type; nobody patches more.
    fn patch(&mut self, name: &str, body: &[u8]) -> Answer {
        let patch: Value = serde_json::from_slice(body).unwrap();
        self.patches.push((name.to_owned(), patch.clone()));
        let Some(node) = self.nodes.get_mut(name) else { return failure(404, "NotFound") };
        node["status"]["conditions"] = patch["status"]["conditions"].clone();
        let said = node.to_string();
        self.tell("MODIFIED", name);
        Answer::Said(200, said)
    }
}

fn failure(code: u16, reason: &str) -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": reason });
    Answer::Said(code, status.to_string())
}
