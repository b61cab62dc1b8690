//! The condition `NetworkUnavailable` of this node, which keeps pods away from it while it is true.

use std::time::SystemTime;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::config::KubernetesOptions;
use crate::kubernetes::client;
use crate::kubernetes::error::PublishError;
use crate::kubernetes::session::within;

const CONDITION: &str = "NetworkUnavailable";

/// Whether the node's network is said to be unavailable, or nothing is said of it.
pub(super) fn is_unavailable(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut said = conditions.filter(|condition| condition.type_ == CONDITION);
    said.next().is_none_or(|condition| condition.status != "False")
}

/// Says that the node's network is there.
///
/// # Errors
/// [`PublishError`].
pub(super) async fn clear(options: &KubernetesOptions, node: &str) -> Result<(), PublishError> {
    let api: Api<Node> = Api::all(client::connect(options).await?);
    let patch = Patch::Strategic(patch(SystemTime::now()));
    within("clearing NetworkUnavailable", api.patch_status(node, &PatchParams::default(), &patch)).await?;
    tracing::info!(node, "NetworkUnavailable is false");
    Ok(())
}

/// Conditions are merged by their type.
fn patch(now: SystemTime) -> Value {
    let now = humantime::format_rfc3339_seconds(now).to_string();
    json!({ "status": { "conditions": [{
        "type": CONDITION,
        "status": "False",
        "reason": "ShuntIsUp",
        "message": "shunt has written the node's network configuration",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }] } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_false_means_that_the_network_is_there() {
        let of = |status: &str| {
            let node = json!({ "metadata": {}, "status": { "conditions": [
                { "type": "Ready", "status": "True" }, { "type": CONDITION, "status": status } ] } });
            is_unavailable(&serde_json::from_value(node).unwrap())
        };
        assert_eq!(["True", "Unknown", "False"].map(of), [true, true, false]);
        assert!(is_unavailable(&Node::default()));
        let said = patch(SystemTime::UNIX_EPOCH);
        assert_eq!(said["status"]["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:00Z");
    }
}
