//! What the policies let an agent write, by their own expressions.

use cel::{Context, Program, Value as Cel};
use serde_json::{Value, json};

use crate::kept::{INSTALL, object, text};

const ACCOUNT: &str = "system:serviceaccount:kube-system:shunt";
const NODE_CLAIM: &str = "authentication.kubernetes.io/node-name";

/// A write as the API server shows it to a policy.
struct Write {
    user: &'static str,
    extra: Value,
    operation: &'static str,
    group: &'static str,
    object: Value,
    old: Value,
}

impl Write {
    fn of(operation: &'static str, object: Value, old: Value) -> Self {
        Self {
            user: ACCOUNT,
            extra: json!({ NODE_CLAIM: ["one"] }),
            operation,
            group: "events.k8s.io",
            object,
            old,
        }
    }

    /// What the policy says: nothing where it does not apply, else each message of what is not so.
    fn refused_by(&self, policy: &str) -> Option<Vec<String>> {
        let policy = object(&text(INSTALL), "ValidatingAdmissionPolicy", policy);
        let spec = &policy["spec"];
        let user = match &self.extra {
            Value::Null => json!({ "username": self.user }),
            extra => json!({ "username": self.user, "extra": extra }),
        };
        let mut context = Context::default();
        context.add_variable_from_value(
            "request",
            json_value(&json!({ "userInfo": user, "operation": self.operation,
                "resource": { "group": self.group } })),
        );
        context.add_variable_from_value("object", json_value(&self.object));
        context.add_variable_from_value("oldObject", json_value(&self.old));
        let each = |list: &Value| list.as_array().unwrap().clone();
        if each(&spec["matchConditions"]).iter().any(|condition| !holds(&context, condition)) {
            return None;
        }
        let variables = each(&spec["variables"]).into_iter().map(|variable| {
            let name = variable["name"].as_str().unwrap().to_owned();
            let value = evaluate(&context, &variable).unwrap();
            let Cel::String(value) = value else { panic!("{name} is {value:?}") };
            (name, value.to_string())
        });
        let variables: std::collections::BTreeMap<_, _> = variables.collect();
        context.add_variable_from_value("variables", cel::to_value(&variables).unwrap());
        let broken = each(&spec["validations"]).into_iter().filter(|validation| !holds(&context, validation));
        Some(broken.map(|validation| validation["message"].as_str().unwrap().to_owned()).collect())
    }

    fn assert_allowed_by(&self, policy: &str) {
        assert_eq!(self.refused_by(policy), Some(Vec::new()));
    }

    fn assert_refused_by(&self, policy: &str, because: &str) {
        let refused = self.refused_by(policy).unwrap();
        assert!(refused.iter().any(|message| message.contains(because)), "{refused:?}");
    }
}

fn json_value(value: &Value) -> Cel {
    cel::to_value(value).unwrap()
}

fn evaluate(context: &Context<'_, '_>, expression: &Value) -> Result<Cel, String> {
    let source = expression["expression"].as_str().unwrap();
    let program = Program::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    program.execute(context).map_err(|error| error.to_string())
}

/// An expression that fails does not hold: `failurePolicy: Fail`.
fn holds(context: &Context<'_, '_>, expression: &Value) -> bool {
    evaluate(context, expression).is_ok_and(|value| value == Cel::Bool(true))
}

fn slice(node: &str) -> Value {
    json!({ "metadata": { "name": "any" }, "spec": { "driver": "bandwidth.shunt.dev", "nodeName": node } })
}

#[test]
fn an_agent_writes_the_slice_of_its_own_node() {
    Write::of("CREATE", slice("one"), Value::Null).assert_allowed_by("shunt-slices");
    Write::of("UPDATE", slice("one"), slice("one")).assert_allowed_by("shunt-slices");
}

#[test]
fn an_agent_writes_no_slice_of_another_node_or_driver() {
    Write::of("CREATE", slice("two"), Value::Null)
        .assert_refused_by("shunt-slices", "not of the agent's node");
    Write::of("UPDATE", slice("one"), slice("two"))
        .assert_refused_by("shunt-slices", "was not of the agent's");
    let mut others = slice("one");
    others["spec"]["driver"] = json!("gpu.example.com");
    Write::of("CREATE", others.clone(), Value::Null)
        .assert_refused_by("shunt-slices", "not of shunt's driver");
    Write::of("UPDATE", slice("one"), others).assert_refused_by("shunt-slices", "was not of the agent's");
    let everywhere = json!({ "metadata": {}, "spec": { "driver": "bandwidth.shunt.dev", "allNodes": true } });
    Write::of("CREATE", everywhere, Value::Null).assert_refused_by("shunt-slices", "not of the agent's node");
}

#[test]
fn a_token_that_is_bound_to_no_node_writes_nothing() {
    for extra in [Value::Null, json!({}), json!({ "other": ["one"] }), json!({ NODE_CLAIM: [""] })] {
        let write = Write { extra, ..Write::of("CREATE", slice(""), Value::Null) };
        write.assert_refused_by("shunt-slices", "the token names no node");
        let node = json!({ "metadata": { "name": "" }, "status": { "capacity": {} } });
        let write = Write { extra: write.extra, ..Write::of("UPDATE", node.clone(), node) };
        write.assert_refused_by("shunt-node", "the token names no node");
    }
}

fn claim(pool: &str) -> Value {
    let result = json!({ "driver": "bandwidth.shunt.dev", "pool": pool, "device": "eth0", "request": "r" });
    json!({ "metadata": { "name": "any" }, "status": {
        "allocation": { "devices": { "results": [result] } },
        "reservedFor": [{ "resource": "pods", "name": "p", "uid": "u" }],
    } })
}

#[test]
fn an_agent_says_what_becomes_of_devices_of_its_own_node_and_changes_no_allocation() {
    let mut said = claim("one");
    said["status"]["devices"] = json!([{ "driver": "bandwidth.shunt.dev" }]);
    Write::of("UPDATE", said.clone(), claim("one")).assert_allowed_by("shunt-claims");
    Write::of("UPDATE", claim("two"), claim("two"))
        .assert_refused_by("shunt-claims", "no bandwidth of the agent's node");
    Write::of("UPDATE", claim("one"), json!({ "metadata": {}, "status": {} }))
        .assert_refused_by("shunt-claims", "no bandwidth of the agent's node");
    for (field, value) in [("allocation", Value::Null), ("reservedFor", json!([]))] {
        let mut altered = said.clone();
        altered["status"][field] = value;
        Write::of("UPDATE", altered, claim("one"))
            .assert_refused_by("shunt-claims", "allocations and reservations are not shunt's");
    }
    let write = Write { extra: Value::Null, ..Write::of("UPDATE", said, claim("one")) };
    write.assert_refused_by("shunt-claims", "the token names no node");
}

fn event(instance: &str) -> Value {
    json!({ "reportingController": "bandwidth.shunt.dev", "reportingInstance": instance, "reason": "ClaimShared",
        "regarding": { "kind": "Pod", "namespace": "team", "name": "web", "uid": "u" } })
}

#[test]
fn an_agent_writes_events_of_its_own_node_and_counts_on_in_those() {
    let policy = "shunt-events";
    Write::of("CREATE", event("one"), Value::Null).assert_allowed_by(policy);
    let mut counted = event("one");
    counted["series"] = json!({ "count": 2 });
    Write::of("UPDATE", counted.clone(), event("one")).assert_allowed_by(policy);
    Write::of("CREATE", event("two"), Value::Null).assert_refused_by(policy, "not of the agent's node");
    Write::of("UPDATE", counted.clone(), event("two")).assert_refused_by(policy, "was another one");
    for (field, value, because) in [
        ("reportingController", json!("kubelet"), "not of the agent's node"),
        ("regarding", json!({ "kind": "Node", "name": "two" }), "regards no pod, and not the agent's node"),
        ("regarding", json!({ "kind": "Secret", "name": "one" }), "regards no pod"),
    ] {
        let mut altered = event("one");
        altered[field] = value;
        Write::of("CREATE", altered.clone(), Value::Null).assert_refused_by(policy, because);
        Write::of("UPDATE", event("one"), altered).assert_refused_by(policy, "was another one");
    }
    let mut of_node = event("one");
    of_node["regarding"] = json!({ "kind": "Node", "name": "one", "uid": "one" });
    Write::of("CREATE", of_node, Value::Null).assert_allowed_by(policy);
    let core = Write { group: "", ..Write::of("CREATE", event("one"), Value::Null) };
    core.assert_refused_by(policy, "not of the agent's node");
    let unbound = Write { extra: Value::Null, ..Write::of("CREATE", event(""), Value::Null) };
    unbound.assert_refused_by(policy, "the token names no node");
    let long = "n".repeat(200);
    let write = Write::of("CREATE", event(&long[..128]), Value::Null);
    Write { extra: json!({ NODE_CLAIM: [long] }), ..write }.assert_allowed_by(policy);
}

#[test]
fn others_are_not_judged() {
    let user = "system:serviceaccount:kube-system:other";
    let write = Write { user, ..Write::of("CREATE", slice("two"), Value::Null) };
    assert_eq!(write.refused_by("shunt-slices"), None);
    assert_eq!(write.refused_by("shunt-node"), None);
}

#[test]
fn an_agent_alters_nothing_that_a_write_of_the_status_carries_along() {
    let before = || {
        json!({ "metadata": { "name": "one", "labels": { "zone": "a" }, "annotations": { "of": "others" } },
            "status": { "capacity": { "cpu": "4" }, "allocatable": { "cpu": "4" },
                "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } }, "nodeInfo": { "machineID": "m" } } })
    };
    let mut own = before();
    own["status"]["capacity"]["shunt.dev/egress-mbps"] = json!("10");
    Write::of("UPDATE", own, before()).assert_allowed_by("shunt-node");
    for (at, value) in [
        ("/metadata/labels", json!({ "zone": "a", "node-role.kubernetes.io/control-plane": "yes" })),
        ("/metadata/annotations", json!({})),
        ("/status/allocatable", json!({ "cpu": "1000" })),
        ("/status/daemonEndpoints", json!({ "kubeletEndpoint": { "Port": 9999 } })),
        ("/status/nodeInfo", json!({ "machineID": "n" })),
    ] {
        let name = at.rsplit('/').next().unwrap();
        let because = format!("the {name} are not shunt's");
        let mut altered = before();
        *altered.pointer_mut(at).unwrap() = value;
        Write::of("UPDATE", altered, before()).assert_refused_by("shunt-node", &because);
        let mut removed = before();
        let (above, _) = at.rsplit_once('/').unwrap();
        removed.pointer_mut(above).unwrap().as_object_mut().unwrap().remove(name);
        Write::of("UPDATE", removed.clone(), before()).assert_refused_by("shunt-node", &because);
        Write::of("UPDATE", before(), removed).assert_refused_by("shunt-node", &because);
    }
}

fn node(name: &str, capacity: Value) -> Value {
    json!({ "metadata": { "name": name }, "status": { "capacity": capacity } })
}

#[test]
fn an_agent_writes_its_own_nodes_figures_and_no_others() {
    let before = node("one", json!({ "cpu": "4", "shunt.dev/egress-mbps": "10" }));
    let own =
        node("one", json!({ "cpu": "4", "shunt.dev/egress-mbps": "20", "shunt.dev/ingress-mbps": "20" }));
    Write::of("UPDATE", own.clone(), before.clone()).assert_allowed_by("shunt-node");
    let cpus = node("one", json!({ "cpu": "400" }));
    Write::of("UPDATE", cpus, before.clone()).assert_refused_by("shunt-node", "the capacity is not shunt's");
    let added = node("one", json!({ "cpu": "4", "example.com/gpu": "8" }));
    Write::of("UPDATE", added, before).assert_refused_by("shunt-node", "the capacity is not shunt's");
    let others = node("two", json!({ "cpu": "4" }));
    Write::of("UPDATE", others.clone(), others)
        .assert_refused_by("shunt-node", "the node is not the agent's");
}

#[test]
fn an_agent_says_that_its_nodes_network_is_there_and_nothing_else_of_it() {
    let with = |conditions: Value, address: &str| {
        let addresses = json!([{ "type": "InternalIP", "address": address }]);
        json!({ "metadata": { "name": "one" },
            "status": { "capacity": {}, "conditions": conditions, "addresses": addresses } })
    };
    let ready = |status: &str| json!({ "type": "Ready", "status": status });
    let network = |status: &str| json!({ "type": "NetworkUnavailable", "status": status });
    let before = with(json!([ready("False"), network("True")]), "192.0.2.1");
    let said = with(json!([ready("False"), network("False")]), "192.0.2.1");
    Write::of("UPDATE", said, before.clone()).assert_allowed_by("shunt-node");
    let first = with(json!([ready("False"), network("False")]), "192.0.2.1");
    Write::of("UPDATE", first, with(json!([ready("False")]), "192.0.2.1")).assert_allowed_by("shunt-node");
    for (altered, because) in [
        (
            with(json!([ready("True"), network("True")]), "192.0.2.1"),
            "the condition is not NetworkUnavailable",
        ),
        (with(json!([network("False")]), "192.0.2.1"), "conditions are not removed"),
        (with(json!([ready("False"), network("False")]), "192.0.2.9"), "the addresses are not shunt's"),
    ] {
        Write::of("UPDATE", altered, before.clone()).assert_refused_by("shunt-node", because);
    }
}
