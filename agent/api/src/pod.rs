//! Whose attachment it is in Kubernetes, as the runtime says it.

use serde::{Deserialize, Serialize};

use crate::Bandwidth;

/// A pod, by `K8S_POD_NAMESPACE`, `K8S_POD_NAME` and `K8S_POD_UID` of `CNI_ARGS`; what the runtime does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its UID.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Where there is no UID: the process that called the plugin, by its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub runtime: String,
    /// Claims that limit the attachment. The agent's own note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Claimed>,
}

impl Pod {
    /// Whose an attachment is, for reports: namespace and name; empty where the runtime does not say.
    pub fn names(pod: Option<&Self>) -> (String, String) {
        pod.map(|pod| (pod.namespace.clone(), pod.name.clone())).unwrap_or_default()
    }
}

/// What an attachment has of claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claimed {
    /// The claims' UIDs.
    pub claims: Vec<String>,
    /// The limits that were asked for beside them.
    pub asked: Bandwidth,
}
