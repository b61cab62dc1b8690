//! One event, of a pod or of the node, as the API server takes it (staging/src/k8s.io/api/events/v1/types.go,
//! pkg/apis/core/validation/events.go).

use std::time::{SystemTime, UNIX_EPOCH};

use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};

use crate::capacity::slice::{DRIVER, check_node_name};
use crate::resources::notice::Notice;

/// Where events of objects without a namespace are.
pub(super) const NAMESPACE_OF_NODES: &str = "default";

/// Bytes of a note (`NoteLengthLimit`).
const NOTE: usize = 1024;

/// Bytes of the reporting instance (`ReportingInstanceLengthLimit`).
const INSTANCE: usize = 128;

/// Bytes of an object's name in the event's: with the time, a name has 253 at most.
const NAME: usize = 230;

/// What an event says.
struct Said<'a> {
    namespace: &'a str,
    name: &'a str,
    regarding: Value,
    action: &'a str,
    reason: &'a str,
    is_fatal: bool,
    note: &'a str,
}

/// The event of a pod; none of a pod whose names are none.
pub(super) fn of_pod(notice: &Notice, node: &str, now: SystemTime) -> Option<Event> {
    let Notice { pod, reason, note } = notice;
    if [&pod.namespace, &pod.name].into_iter().any(|name| check_node_name(name).is_err()) {
        return None;
    }
    let said = Said {
        namespace: &pod.namespace,
        name: &pod.name,
        regarding: json!({
            "apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid,
        }),
        action: "Attaching",
        reason: reason.name(),
        is_fatal: reason.is_fatal(),
        note,
    };
    event(&said, node, now)
}

/// The event of the agent's own node; none if its name is none. As the kubelet does, and `kubectl describe node` expects, it has the node's
/// name for its UID.
pub(super) fn of_node(node: &str, reason: &str, note: &str, now: SystemTime) -> Option<Event> {
    check_node_name(node).ok()?;
    let said = Said {
        namespace: NAMESPACE_OF_NODES,
        name: node,
        regarding: json!({ "apiVersion": "v1", "kind": "Node", "name": node, "uid": node }),
        action: "KeepingNetwork",
        reason,
        is_fatal: true,
        note,
    };
    event(&said, node, now)
}

fn event(said: &Said<'_>, node: &str, now: SystemTime) -> Option<Event> {
    let nanoseconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = cut(said.name, NAME).trim_end_matches(['-', '.']);
    let event = json!({
        "metadata": { "namespace": said.namespace, "name": format!("{name}.{nanoseconds:x}") },
        "eventTime": humantime::format_rfc3339_micros(now).to_string(),
        "reportingController": DRIVER,
        "reportingInstance": cut(node, INSTANCE),
        "action": said.action,
        "reason": said.reason,
        "regarding": said.regarding,
        "note": cut(said.note, NOTE),
        "type": if said.is_fatal { "Warning" } else { "Normal" },
    });
    serde_json::from_value(event).ok()
}

/// A patch of an event that was noticed so often.
pub(super) fn series(count: u32, now: SystemTime) -> Value {
    let last = humantime::format_rfc3339_micros(now).to_string();
    // A series has two at least.
    json!({ "series": { "count": count.max(2), "lastObservedTime": last } })
}

/// The beginning of a text, in so many bytes.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shunt_agent_api::Pod;

    use super::*;
    use crate::resources::notice::Reason;

    fn notice(namespace: &str, name: &str, note: &str) -> Notice {
        let pod = Pod { namespace: namespace.into(), name: name.into(), uid: "u-1".into(), ..Pod::default() };
        Notice { pod, reason: Reason::HostPortTaken, note: note.into() }
    }

    #[test]
    fn an_event_regards_the_pod_and_keeps_to_the_servers_limits() {
        let now = UNIX_EPOCH + Duration::from_nanos(255);
        let long = "ä".repeat(2000);
        let made = of_pod(&notice("team", &"x".repeat(253), &long), &"n".repeat(200), now).unwrap();
        let made = serde_json::to_value(made).unwrap();
        assert_eq!(made["regarding"]["uid"], "u-1");
        assert_eq!((&made["reason"], &made["type"]), (&json!("HostPortTaken"), &json!("Warning")));
        assert_eq!(made["eventTime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(made["note"].as_str().unwrap().len(), NOTE);
        assert_eq!(made["reportingInstance"].as_str().unwrap().len(), INSTANCE);
        let name = made["metadata"]["name"].as_str().unwrap();
        assert!(name.ends_with("x.ff") && name.len() <= 253, "{name}");
        assert_eq!(series(1, now)["series"]["count"], 2);
    }

    #[test]
    fn names_that_are_none_make_no_event_and_no_path() {
        for (namespace, name) in [("team/../x", "web"), ("team", "../web"), ("", "web"), ("team", "We b")] {
            assert_eq!(
                of_pod(&notice(namespace, name, ""), "node-1", UNIX_EPOCH),
                None,
                "{namespace} {name}"
            );
        }
    }

    #[test]
    fn an_event_of_the_node_is_found_by_its_name() {
        let made = of_node("node-1", "PodCIDRMissing", "why", UNIX_EPOCH).unwrap();
        let made = serde_json::to_value(made).unwrap();
        assert_eq!(made["metadata"], json!({ "namespace": "default", "name": "node-1.0" }));
        assert_eq!(
            made["regarding"],
            json!({ "apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-1" })
        );
        assert_eq!((&made["type"], &made["reportingInstance"]), (&json!("Warning"), &json!("node-1")));
        assert_eq!(of_node("../node", "PodCIDRMissing", "why", UNIX_EPOCH), None);
    }
}
