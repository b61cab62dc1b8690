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

/// Who remarks.
const WHO: &str = "shared claims";

/// What is said of a server that does not answer.
const SILENT: &str = "the API server does not answer";

/// How long an ADD waits for the API server, twice at most for a pod with one claim. The plugin waits for 15 s.
const DEADLINE: Duration = Duration::from_secs(5);

impl Consult for ClaimDriver {
    fn before_attach<'a>(&'a self, pod: &'a Pod) -> Consultation<'a> {
        Box::pin(async move {
            let others = self.claims_of_others(pod).await;
            if others.is_empty() {
                return Ok(());
            }
            let read = match timeout(DEADLINE, self.read_pod(pod)).await {
                Ok(read) => read.map_err(|error| error.to_string()),
                Err(_) => Err(SILENT.to_owned()),
            };
            let object = match read {
                Ok(object) => object,
                Err(why) => {
                    // The credentials may have been renewed.
                    *self.client.lock().await = None;
                    return self.unknown(pod, &why).await;
                }
            };
            self.core.remark(WHO, None).await;
            self.refuse_shared(pod, &object, &others).await
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

    async fn read_pod(&self, pod: &Pod) -> Result<PodObject, PublishError> {
        let api = Api::<PodObject>::namespaced(self.client().await?, &pod.namespace);
        within("reading the pod", api.get(&pod.name)).await
    }

    /// Refuses a pod that has one of these claims while another pod has it, too, or while that cannot be told. A claim that has passed
    /// on to the pod becomes its own.
    async fn refuse_shared(&self, pod: &Pod, object: &PodObject, others: &[Claim]) -> Result<(), AgentError> {
        let names = claim_names(object);
        for claim in others.iter().filter(|claim| names.contains(&claim.name.as_str())) {
            let Claim { namespace, name, uid, .. } = claim.clone();
            let refused = |kind, why: String| AgentError { kind, message: format!("claim {claim}: {why}") };
            let prepared = timeout(DEADLINE, self.prepare_claim(&ClaimName { namespace, name, uid })).await;
            match prepared {
                Ok(Ok(claim)) if claim.pod.uid == pod.uid => {}
                Ok(Ok(claim)) => {
                    let why = format!("pod {} has it, and the API server cannot be asked", claim.pod.name);
                    return Err(refused(ErrorKind::Unavailable, why));
                }
                Ok(Err(error @ DriverError::Server(_))) => {
                    return Err(refused(ErrorKind::Unavailable, error.to_string()));
                }
                Ok(Err(error)) => return Err(refused(ErrorKind::Claim, error.to_string())),
                Err(_) => return Err(refused(ErrorKind::Unavailable, SILENT.to_owned())),
            }
        }
        Ok(())
    }

    /// Lets a pod pass of which it is not known whether it shares a claim.
    async fn unknown(&self, pod: &Pod, why: &str) -> Result<(), AgentError> {
        let Pod { namespace, name, .. } = pod;
        let remark = format!(
            "kubernetes: it is not known whether pod {namespace}/{name} shares a claim of bandwidth: {why}"
        );
        tracing::warn!("{remark}");
        self.core.remark(WHO, Some(remark)).await;
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
