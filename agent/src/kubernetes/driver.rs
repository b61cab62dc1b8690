//! The driver of the uplinks' bandwidth: what the kubelet asks is answered from the API server and the agent's thread.

use std::fmt;
use std::time::Instant;

use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::{Api, Client};
use shunt_kubelet::{ClaimName, Device, DeviceHealth, Driver};
use tokio::sync::{Mutex, watch};

use super::allocation::{self, AllocationError};
use super::client;
use super::error::PublishError;
use super::session::within;
use crate::agent::Core;
use crate::claims::Claim;
use crate::config::KubernetesOptions;
use crate::requests::prepare::PrepareError;
use crate::state::StoreError;

/// Why a claim is not prepared, or not unprepared.
#[derive(Debug, thiserror::Error)]
pub(super) enum DriverError {
    #[error(transparent)]
    Server(#[from] PublishError),
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    State(#[from] StoreError),
    #[error("the agent is ending")]
    Ending,
}

/// The driver.
pub(super) struct ClaimDriver {
    pub(super) options: KubernetesOptions,
    /// The node's name, which is its pool's.
    pub(super) node: String,
    pub(super) core: Core,
    /// None until one is needed, and after a failure.
    pub(super) client: Mutex<Option<Client>>,
    pub(super) health: watch::Sender<Vec<DeviceHealth>>,
    /// What the kubelet has said of the registration last.
    pub(super) registration: watch::Sender<Result<(), String>>,
}

impl fmt::Debug for ClaimDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimDriver").field("node", &self.node).finish_non_exhaustive()
    }
}

impl ClaimDriver {
    /// The client that is kept, or a new one.
    pub(super) async fn client(&self) -> Result<Client, PublishError> {
        let mut kept = self.client.lock().await;
        match &*kept {
            Some(client) => Ok(client.clone()),
            None => Ok(kept.insert(client::connect(&self.options).await?).clone()),
        }
    }

    /// Reads a claim as the server has it.
    ///
    /// # Errors
    /// [`PublishError`].
    pub(super) async fn read(&self, name: &ClaimName) -> Result<ResourceClaim, PublishError> {
        let api = Api::<ResourceClaim>::namespaced(self.client().await?, &name.namespace);
        let read = within("reading the claim", api.get(&name.name)).await;
        if read.as_ref().is_err_and(|error| !error.is_not_known()) {
            // The credentials may have been renewed.
            *self.client.lock().await = None;
        }
        read
    }

    /// Prepares a claim as the server has it. One that was prepared before is, without the server, as it was.
    ///
    /// # Errors
    /// [`DriverError`]; what was prepared still is.
    pub(super) async fn prepare_claim(&self, name: &ClaimName) -> Result<Claim, DriverError> {
        let claim = match self.read(name).await {
            Ok(found) => allocation::read(&found, name, &self.node)?,
            // What was prepared before is answered without the server.
            Err(error) => match self.known(name).await.filter(|_| !error.is_not_known()) {
                Some(claim) => {
                    tracing::warn!(%claim, %error, "prepared before, and not compared with the API server's");
                    return Ok(claim);
                }
                None => return Err(error.into()),
            },
        };
        let prepared = claim.clone();
        let outcome = self.core.with(move |agent| agent.node().prepare(prepared)).await;
        outcome.ok_or(DriverError::Ending)??;
        Ok(claim)
    }

    async fn known(&self, name: &ClaimName) -> Option<Claim> {
        let uid = name.uid.clone();
        self.core.with(move |agent| agent.node().claims.get(&uid).cloned()).await.flatten()
    }
}

impl Driver for ClaimDriver {
    async fn prepare(&self, name: ClaimName) -> Result<Vec<Device>, String> {
        let begun = Instant::now();
        let ClaimName { namespace, name: own, uid } = &name;
        match self.prepare_claim(&name).await {
            Ok(claim) => {
                tracing::debug!(%claim, took = ?begun.elapsed(), "answered the kubelet");
                Ok(claim.shares.into_iter().map(device).collect())
            }
            Err(error) => {
                tracing::warn!(namespace, name = own, uid, %error, "a claim is not prepared");
                Err(format!("claim {namespace}/{own}: {error}"))
            }
        }
    }

    async fn unprepare(&self, name: ClaimName) -> Result<(), String> {
        let uid = name.uid.clone();
        let outcome = self.core.with(move |agent| agent.node().unprepare(&uid)).await;
        let outcome = outcome.ok_or(DriverError::Ending).and_then(|done| Ok(done?));
        outcome.map_err(|error| {
            let ClaimName { namespace, name, uid } = &name;
            tracing::warn!(namespace, name, uid, %error, "a claim is not unprepared");
            format!("claim {namespace}/{name}: {error}")
        })
    }

    fn health(&self) -> watch::Receiver<Vec<DeviceHealth>> {
        self.health.subscribe()
    }

    fn registered(&self, outcome: Result<(), String>) {
        // Somebody listens as long as the driver is served.
        let _before = self.registration.send_replace(outcome);
    }
}

fn device(share: crate::claims::Share) -> Device {
    Device { request: share.request, pool: share.pool, device: share.device }
}
