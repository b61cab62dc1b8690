//! What an API server keeps, and what it says to requests.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use shunt_agent::capacity::slice::DRIVER;
use tokio::sync::mpsc;

use crate::api_answer::{Answer, failure, missing, said};
use crate::api_claims::check_devices;
use crate::api_rules::{canonical, check_slice, without_gated_fields};

/// The only node.
pub(crate) const NODE: &str = "node-1";

/// Events of pods in the tests' namespace.
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/team/events";

const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";

const CLAIMS: &str = "/apis/resource.k8s.io/v1/resourceclaims";

/// A request.
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) kind: Option<String>,
    pub(crate) body: Bytes,
}

impl Ask {
    /// The verb of the request, by which rights are given (as far as an agent has any).
    fn verb(&self) -> &'static str {
        let is_list = self.query.contains("fieldSelector") || self.path == CLAIMS;
        match self.method.as_str() {
            "GET" if self.query.contains("watch=true") => "watch",
            "GET" if is_list => "list",
            "GET" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            _ => "delete",
        }
    }
}

/// How the server is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Mood {
    #[default]
    Well,
    /// 403 to everything.
    Forbids,
    /// 200, and this.
    Nonsense(&'static str),
    /// 200, and never an end.
    Endless,
    /// `resource.k8s.io/v1` is not served.
    HasNoSlices,
    /// The feature gate of consumable capacity is off.
    DropsFields,
}

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) mood: Mood,
    /// So many of the writes to come are told that the object has changed.
    pub(crate) conflicts: usize,
    /// Every request: method, path and query.
    pub(crate) asked: Vec<String>,
    /// How long an answer takes.
    pub(crate) lag: Duration,
    /// Verbs that get 403, each with a part of the path: as a role has them.
    pub(crate) forbidden: Vec<(&'static str, &'static str)>,
    /// Events of pods, as they were created.
    pub(crate) events: Vec<Value>,
    /// Claims and pods by their paths.
    pub(crate) objects: BTreeMap<String, Value>,
    version: u64,
    slices: BTreeMap<String, Value>,
    capacity: serde_json::Map<String, Value>,
    /// Every change, with its version and its resource's path.
    changes: Vec<(u64, String, String)>,
    watches: Vec<(String, mpsc::UnboundedSender<String>)>,
}

impl Store {
    /// The only slice of the node and the driver, if there is one.
    pub(crate) fn slice(&self) -> Option<&Value> {
        let is_ours = |slice: &&Value| slice["spec"]["nodeName"] == NODE && slice["spec"]["driver"] == DRIVER;
        let ours: Vec<_> = self.slices.values().filter(is_ours).collect();
        assert!(ours.len() <= 1, "{:?}", self.slices);
        ours.first().copied()
    }

    /// Somebody else creates a slice.
    pub(crate) fn create_slice(&mut self, slice: Value) {
        self.put(SLICES, "ADDED", slice);
    }

    /// Somebody creates or changes a claim.
    pub(crate) fn keep_claim(&mut self, path: String, claim: Value) {
        let kind = if self.objects.contains_key(&path) { "MODIFIED" } else { "ADDED" };
        self.tell(CLAIMS, kind, &claim);
        self.objects.insert(path, claim);
    }

    /// Somebody deletes a claim.
    pub(crate) fn delete_claim(&mut self, path: &str) {
        let claim = self.objects.remove(path).unwrap();
        self.tell(CLAIMS, "DELETED", &claim);
    }

    fn claims(&mut self, ask: &Ask) -> Answer {
        if ask.query.contains("watch=true") {
            return self.watch(ask);
        }
        let items: Vec<_> = self.objects.values().filter(|it| it["kind"] == "ResourceClaim").collect();
        let list = json!({ "kind": "List", "apiVersion": "v1", "items": items,
            "metadata": { "resourceVersion": self.version.to_string() } });
        Answer::Said(200, list.to_string())
    }

    /// What a kubelet does when it starts.
    pub(crate) fn delete_slices(&mut self) {
        for (_, slice) in std::mem::take(&mut self.slices) {
            self.tell(SLICES, "DELETED", &slice);
        }
    }

    /// Somebody else writes the slice.
    pub(crate) fn alter(&mut self, alter: impl FnOnce(&mut Value)) {
        let mut slice = self.slice().unwrap().clone();
        alter(&mut slice);
        self.put(SLICES, "MODIFIED", slice);
    }

    /// Ends every watch.
    pub(crate) fn end_watches(&mut self) {
        self.watches.clear();
    }

    /// The node's capacity under this name.
    pub(crate) fn capacity(&self, name: &str) -> Option<&str> {
        self.capacity.get(name).and_then(Value::as_str)
    }

    pub(crate) fn answer(&mut self, ask: &Ask) -> Answer {
        self.asked.push(format!("{} {}?{}", ask.method, ask.path, ask.query));
        let nodes = ["/api/v1/nodes", &format!("/api/v1/nodes/{NODE}/status")].contains(&ask.path.as_str());
        let forbids = |(verb, path): &(&str, &str)| ask.verb() == *verb && ask.path.ends_with(path);
        if let Some((verb, path)) = self.forbidden.iter().find(|it| forbids(it)) {
            return failure(403, "Forbidden", &format!("cannot {verb} {path}"));
        }
        if let Some(rest) = ask.path.strip_prefix(EVENTS) {
            return self.event(ask, rest.trim_start_matches('/'));
        }
        match self.mood {
            Mood::Forbids => failure(403, "Forbidden", "this node may not do that"),
            Mood::Nonsense(text) => Answer::Said(200, text.to_owned()),
            Mood::Endless => Answer::Endless,
            Mood::HasNoSlices if !nodes => {
                failure(404, "NotFound", "the server could not find the requested resource")
            }
            _ => match (ask.method.as_str(), ask.path.as_str()) {
                ("GET", SLICES) => self.list(ask, &format!("spec.nodeName={NODE}")),
                ("GET", "/api/v1/nodes") => self.list(ask, &format!("metadata.name={NODE}")),
                ("POST", SLICES) => self.create(ask),
                ("GET", CLAIMS) => self.claims(ask),
                (method, path) => match path.strip_prefix(SLICES).and_then(|rest| rest.strip_prefix('/')) {
                    Some(name) if method == "GET" => self.get(name),
                    Some(name) if method == "PUT" => self.replace(name, ask),
                    None if method == "PATCH" && nodes => self.patch(ask),
                    None if method == "GET" => self.object(path),
                    None if method == "PATCH" && path.ends_with("/status") => {
                        self.apply(path.trim_end_matches("/status"), ask)
                    }
                    _ => failure(405, "MethodNotAllowed", "nobody should ask this"),
                },
            },
        }
    }

    /// Nodes may only list what is theirs, and have to say so.
    fn list(&mut self, ask: &Ask, selector: &str) -> Answer {
        if !ask.query.split('&').any(|word| word == format!("fieldSelector={selector}")) {
            return failure(403, "Forbidden", "can only list or watch with a field selector of its own node");
        }
        if ask.query.contains("watch=true") {
            return self.watch(ask);
        }
        let of_node = self.slices.values().filter(|slice| slice["spec"]["nodeName"] == NODE);
        let items: Vec<_> = if ask.path == SLICES { of_node.cloned().collect() } else { vec![self.node()] };
        let list = json!({ "kind": "List", "apiVersion": "v1", "items": items,
            "metadata": { "resourceVersion": self.version.to_string() } });
        Answer::Said(200, list.to_string())
    }

    /// What has changed since the version that is asked for, and whatever will.
    fn watch(&mut self, ask: &Ask) -> Answer {
        let version = ask.query.split('&').find_map(|word| word.strip_prefix("resourceVersion=")).unwrap();
        let version: u64 = version.parse().unwrap();
        let (watch, lines) = mpsc::unbounded_channel();
        for (_, _, line) in self.changes.iter().filter(|(at, path, _)| *at > version && *path == ask.path) {
            watch.send(line.clone()).unwrap();
        }
        self.watches.push((ask.path.clone(), watch));
        Answer::Stream(lines)
    }

    /// Server-side apply, as far as one writer can tell: the devices that are applied replace those of the same names.
    fn apply(&mut self, path: &str, ask: &Ask) -> Answer {
        assert_eq!(ask.kind.as_deref(), Some("application/apply-patch+yaml"));
        let patch: Value = serde_json::from_slice(&ask.body).unwrap();
        let Some(object) = self.objects.get_mut(path) else {
            return failure(404, "NotFound", "no such object");
        };
        if object["metadata"]["uid"] != patch["metadata"]["uid"] {
            return failure(409, "Conflict", "the UID in the precondition is not the object's");
        }
        let devices = check_devices(&patch["status"]["devices"]);
        object["status"]["devices"] = devices;
        said(object)
    }

    /// Creates an event, or counts on in its series.
    fn event(&mut self, ask: &Ask, name: &str) -> Answer {
        if self.mood == Mood::Forbids {
            return failure(403, "Forbidden", "this node may not do that");
        }
        let body: Value = serde_json::from_slice(&ask.body).unwrap();
        if ask.verb() == "create" {
            let typed: k8s_openapi::api::events::v1::Event = serde_json::from_value(body.clone()).unwrap();
            assert!(typed.event_time.is_some() && typed.reporting_controller.is_some());
            self.events.push(body.clone());
            return said(&body);
        }
        assert_eq!(ask.kind.as_deref(), Some("application/merge-patch+json"));
        let Some(event) = self.events.iter_mut().find(|event| event["metadata"]["name"] == name) else {
            return failure(404, "NotFound", "no such event");
        };
        event["series"] = body["series"].clone();
        said(event)
    }

    fn object(&self, path: &str) -> Answer {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.objects.get(path).map_or_else(|| missing(name), said)
    }

    fn get(&self, name: &str) -> Answer {
        self.slices.get(name).map_or_else(|| failure(404, "NotFound", "no such slice"), said)
    }

    fn create(&mut self, ask: &Ask) -> Answer {
        self.write(ask, |store, slice| match store.slices.contains_key(name_of(slice)) {
            true => Err(failure(409, "AlreadyExists", "there is one already")),
            false => Ok("ADDED"),
        })
    }

    fn replace(&mut self, name: &str, ask: &Ask) -> Answer {
        self.write(ask, |store, slice| match store.slices.get(name) {
            None => Err(failure(404, "NotFound", "no such slice")),
            Some(old) if old["metadata"]["resourceVersion"] != slice["metadata"]["resourceVersion"] => {
                Err(failure(409, "Conflict", "the object has been modified"))
            }
            Some(old)
                if old["spec"]["pool"]["generation"].as_i64()
                    >= slice["spec"]["pool"]["generation"].as_i64() =>
            {
                Err(failure(422, "Invalid", "the pool's generation must grow"))
            }
            Some(_) => Ok("MODIFIED"),
        })
    }

    fn write(
        &mut self,
        ask: &Ask,
        allow: impl FnOnce(&Self, &Value) -> Result<&'static str, Answer>,
    ) -> Answer {
        let slice = match check_slice(&ask.body) {
            Ok(slice) => slice,
            Err(why) => return failure(422, "Invalid", &why),
        };
        if self.conflicts > 0 {
            self.conflicts -= 1;
            return failure(409, "Conflict", "the object has been modified");
        }
        match allow(self, &slice) {
            Ok(kind) => said(&self.put(SLICES, kind, slice)),
            Err(refused) => refused,
        }
    }

    fn put(&mut self, path: &str, kind: &str, mut slice: Value) -> Value {
        canonical(&mut slice);
        if self.mood == Mood::DropsFields {
            without_gated_fields(&mut slice);
        }
        slice["metadata"]["resourceVersion"] = json!((self.version + 1).to_string());
        self.slices.insert(name_of(&slice).to_owned(), slice.clone());
        self.tell(path, kind, &slice);
        slice
    }

    fn patch(&mut self, ask: &Ask) -> Answer {
        assert_eq!(ask.kind.as_deref(), Some("application/merge-patch+json"));
        let patch: Value = serde_json::from_slice(&ask.body).unwrap();
        for (name, figure) in patch["status"]["capacity"].as_object().unwrap() {
            let mut figure = figure.clone();
            canonical(&mut figure);
            self.capacity.insert(name.clone(), figure);
        }
        let node = self.node();
        self.tell("/api/v1/nodes", "MODIFIED", &node);
        said(&node)
    }

    fn node(&self) -> Value {
        json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": NODE }, "status": { "capacity": self.capacity } })
    }

    fn tell(&mut self, path: &str, kind: &str, object: &Value) {
        self.version += 1;
        let line = format!("{}\n", json!({ "type": kind, "object": object }));
        self.changes.push((self.version, path.to_owned(), line.clone()));
        self.watches.retain(|(watched, watch)| watched != path || watch.send(line.clone()).is_ok());
    }
}

fn name_of(slice: &Value) -> &str {
    slice["metadata"]["name"].as_str().unwrap()
}
