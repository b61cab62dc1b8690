//! Refusals that the user of a pod can cure.

use shunt_agent_api::{Pod, Request};

use crate::resources::notice::{Notice, Reason};
use crate::resources::{Node, Refusal};

/// The pod that a request is about, if it changes anything and its UID is known.
pub(super) fn pod_of(node: &Node, request: &Request) -> Option<Pod> {
    let pod = match request {
        Request::Attach { port, .. }
        | Request::Adopt { port }
        | Request::Restore { port }
        | Request::Update { port, .. }
        | Request::Address { port } => port.pod.as_ref(),
        // Plugins further down the chain name the attachment alone.
        Request::Limit { key, .. } | Request::Map { key, .. } => {
            node.registry.get(key).and_then(|known| known.port.pod.as_ref())
        }
        _ => None,
    };
    pod.filter(|pod| ![&pod.namespace, &pod.name, &pod.uid].into_iter().any(String::is_empty)).cloned()
}

/// Tells of a refusal, if it is one of those.
pub(super) fn notice(node: &Node, pod: Pod, refusal: &Refusal) {
    if let Some(reason) = Reason::of(refusal) {
        node.events.notify(|| Notice { pod, reason, note: note(refusal) });
    }
}

/// What users of the pod's namespace are told: of other pods' containers nothing.
fn note(refusal: &Refusal) -> String {
    match refusal {
        Refusal::PortTaken { mapping, .. } => format!("another pod of this node has the host port {mapping}"),
        refusal => refusal.to_string(),
    }
}
