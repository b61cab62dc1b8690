//! A pod that shares another pod's claim: the kubelet prepares a claim once, and says nothing when a second pod takes part.
//!
//! So a pod that has no claim here is looked up where its namespace has prepared claims of other pods: one request to the API server for
//! such an ADD, and none for any other. A server that does not answer keeps no pod from starting, but for one that is known to share.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod as PodObject;
use kube::Api;
use shunt_agent_api::{AgentError, ErrorKind, Pod};
use shunt_kubelet::ClaimName;
use tokio::time::timeout;

use super::driver::{ClaimDriver, DriverError};
use super::error::PublishError;
use super::session::within;
use crate::agent::{Consult, Consultation};
use crate::claims::Claim;

/// How long an ADD waits for the API server. The plugin waits for 15 s.
const DEADLINE: Duration = Duration::from_secs(5);

impl Consult for ClaimDriver {
    fn before_attach<'a>(&'a self, pod: &'a Pod) -> Consultation<'a> {
        Box::pin(async move {
            let others = self.claims_of_others(pod).await;
            if others.is_empty() {
                return Ok(());
            }
            match timeout(DEADLINE, self.refuse_shared(pod, &others)).await {
                Ok(Ok(judged)) => judged,
                Ok(Err(error)) => self.unknown(pod, &error.to_string()),
                Err(_) => self.unknown(pod, "the API server does not answer"),
            }
        })
    }
}

impl ClaimDriver {
    /// Prepared claims of the pod's namespace; none where it has one of its own.
    async fn claims_of_others(&self, pod: &Pod) -> Vec<Claim> {
        let Pod { namespace, uid, .. } = pod.clone();
        let others = self.core.with(move |agent| {
            let claims = &agent.node().claims;
            match claims.of_pod(&uid).next() {
                Some(_) => Vec::new(),
                None => claims.iter().filter(|claim| claim.namespace == namespace).cloned().collect(),
            }
        });
        others.await.unwrap_or_default()
    }

    /// Refuses a pod that has one of these claims while another pod has it, too. A claim that has passed on to the pod becomes its own.
    async fn refuse_shared(
        &self,
        pod: &Pod,
        others: &[Claim],
    ) -> Result<Result<(), AgentError>, PublishError> {
        let api = Api::<PodObject>::namespaced(self.client().await?, &pod.namespace);
        let object = within("reading the pod", api.get(&pod.name)).await?;
        let names = claim_names(&object);
        for claim in others.iter().filter(|claim| names.contains(&claim.name.as_str())) {
            let Claim { namespace, name, uid, .. } = claim.clone();
            let refused = |kind, why: String| AgentError { kind, message: format!("claim {claim}: {why}") };
            match self.prepare_claim(&ClaimName { namespace, name, uid }).await {
                Ok(claim) if claim.pod.uid == pod.uid => {}
                Ok(claim) => {
                    let why = format!("pod {} has it, and the API server cannot be asked", claim.pod.name);
                    return Ok(Err(refused(ErrorKind::Unavailable, why)));
                }
                Err(error @ DriverError::Server(_)) => {
                    return Ok(Err(refused(ErrorKind::Unavailable, error.to_string())));
                }
                Err(error) => return Ok(Err(refused(ErrorKind::Claim, error.to_string()))),
            }
        }
        Ok(Ok(()))
    }

    /// Lets a pod pass of which it is not known whether it shares a claim.
    fn unknown(&self, pod: &Pod, why: &str) -> Result<(), AgentError> {
        let Pod { namespace, name, .. } = pod;
        tracing::warn!(namespace, name, why, "whether the pod shares a claim of bandwidth is not known");
        Ok(())
    }
}

/// The claims that a pod names, and those that were made for it.
fn claim_names(pod: &PodObject) -> Vec<&str> {
    let spec = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default();
    let status = pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_deref());
    let named = spec.iter().filter_map(|claim| claim.resource_claim_name.as_deref());
    let made = status.unwrap_or_default().iter().filter_map(|claim| claim.resource_claim_name.as_deref());
    named.chain(made).collect()
}
