//! The nodes as an API server keeps them: listed, watched, and patched.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::sync::mpsc;

const PATH: &str = "/api/v1/nodes";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

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
    /// Every event of a node.
    pub(crate) events: Vec<Value>,
    /// How often all nodes were listed, and how many pages were given.
    pub(crate) lists: usize,
    pub(crate) pages: usize,
    /// What each watch asked for.
    pub(crate) watched: Vec<String>,
    version: u64,
    nodes: BTreeMap<String, Value>,
    /// What has happened, with the version that it led to.
    history: Vec<(u64, String)>,
    /// Nothing up to this version is remembered.
    forgotten: u64,
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

    /// The notes of a node's events for a reason.
    pub(crate) fn told(&self, node: &str, reason: &str) -> Vec<String> {
        let is_it = |event: &&Value| event["regarding"]["name"] == node && event["reason"] == reason;
        self.events.iter().filter(is_it).map(|event| event["note"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends every watch.
    pub(crate) fn end_watches(&mut self) {
        self.watches.clear();
    }

    /// How far everything has come.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Something happens elsewhere in the cluster, and watches hear how far it has come.
    pub(crate) fn bookmark(&mut self) {
        self.version += 1;
        let metadata = json!({ "resourceVersion": self.version.to_string(), "creationTimestamp": null });
        let object = json!({ "kind": "Node", "apiVersion": "v1", "metadata": metadata });
        self.say(&format!("{}\n", json!({ "type": "BOOKMARK", "object": object })));
    }

    /// Forgets what has happened so far.
    pub(crate) fn compact(&mut self) {
        self.version += 1;
        self.history.clear();
        self.forgotten = self.version;
    }

    fn tell(&mut self, kind: &str, name: &str) {
        self.version += 1;
        let Some(node) = self.nodes.get_mut(name) else { return };
        node["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let line = format!("{}\n", json!({ "type": kind, "object": node }));
        self.history.push((self.version, line.clone()));
        self.say(&line);
    }

    fn say(&mut self, line: &str) {
        self.watches.retain(|watch| watch.send(line.to_owned()).is_ok());
    }

    /// Everything behind the version that is asked for, and what is yet to come.
    fn watch(&mut self, query: &str) -> Answer {
        let since: u64 = value(query, "resourceVersion").unwrap().parse().unwrap();
        self.watched.push(query.to_owned());
        let (watch, lines) = mpsc::unbounded_channel();
        if since < self.forgotten {
            // As the server does: the watch begins, and its first word is the last.
            let line = json!({ "type": "ERROR", "object": status(410, "Expired") });
            watch.send(format!("{line}\n")).unwrap();
            return Answer::Stream(lines);
        }
        for (_, line) in self.history.iter().filter(|(version, _)| *version > since) {
            watch.send(line.clone()).unwrap();
        }
        self.watches.push(watch);
        Answer::Stream(lines)
    }

    /// As many as are asked for, behind the one that is named.
    fn list(&mut self, query: &str) -> Answer {
        let behind = value(query, "continue");
        self.pages += 1;
        self.lists += usize::from(behind.is_none());
        let limit = value(query, "limit").map_or(usize::MAX, |limit| limit.parse().unwrap());
        let rest = self.nodes.iter().filter(|(name, _)| behind.is_none_or(|behind| name.as_str() > behind));
        let page: Vec<_> = rest.clone().take(limit).collect();
        let last = page.last().filter(|_| rest.count() > page.len()).map(|(name, _)| name.as_str());
        let items: Vec<_> = page.iter().map(|(_, node)| node).collect();
        let metadata = json!({ "resourceVersion": self.version.to_string(), "continue": last });
        let list = json!({ "kind": "NodeList", "apiVersion": "v1", "items": items, "metadata": metadata });
        Answer::Said(200, list.to_string())
    }

    pub(crate) fn answer(&mut self, method: &str, path: &str, query: &str, body: &[u8]) -> Answer {
        if self.forbids {
            return failure(403, "Forbidden");
        }
        let name = path.strip_prefix("/api/v1/nodes/").and_then(|rest| rest.strip_suffix("/status"));
        match (method, name) {
            ("GET", None) if path == PATH && query.contains("watch=true") => self.watch(query),
            ("GET", None) if path == PATH => self.list(query),
            ("PATCH", Some(name)) => self.patch(name, body),
            ("POST", None) if path == EVENTS => {
                self.events.push(serde_json::from_slice(body).unwrap());
                Answer::Said(201, String::from_utf8(body.to_vec()).unwrap())
            }
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
    Answer::Said(code, status(code, reason).to_string())
}

fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": reason })
}

/// The value of a query's key.
fn value<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}
