//! Claims whose pod is not recognized: the runtime does not say whose sandbox it is.

use shunt_agent_api::{BridgePort, Pod};

use crate::resources::Node;

impl Node {
    /// Warns of an attachment without a pod's UID where a prepared claim waits for one that it may be.
    pub(crate) fn warn_of_missing_pod(&mut self, port: &BridgePort) {
        let nobody = Pod::default();
        let pod = port.pod.as_ref().unwrap_or(&nobody);
        if self.claims.is_empty() || !pod.uid.is_empty() {
            return;
        }
        let may_be = |said: &str, is: &str| said.is_empty() || said == is;
        let has_none = |uid: &str| !self.registry.attachments().any(|it| has_claim(&it.port, uid));
        let waiting = self.claims.iter().find(|claim| {
            may_be(&pod.namespace, &claim.namespace)
                && may_be(&pod.name, &claim.pod.name)
                && has_none(&claim.uid)
        });
        let Some(claim) = waiting else { return };
        let runtime = match pod.runtime.as_str() {
            "" => "the runtime".to_owned(),
            name => format!("the runtime ({name})"),
        };
        // Without the container: one warning for all of them.
        let warning = format!(
            "claim {claim} of pod {} is prepared, and {runtime} does not say whose containers it starts: \
             without K8S_POD_UID in CNI_ARGS no claim limits them",
            claim.pod.name
        );
        tracing::warn!(key = %port.key, "attached without a pod's UID");
        self.warn(warning);
    }
}

/// Whether a claim limits an attachment.
pub(crate) fn has_claim(port: &BridgePort, uid: &str) -> bool {
    let claimed = port.pod.as_ref().and_then(|pod| pod.claimed.as_ref());
    claimed.is_some_and(|claimed| claimed.claims.iter().any(|claim| claim == uid))
}
