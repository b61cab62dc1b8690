//! The claims' own status (`status.devices[]`): which interface has what a claim was given, and that it is limited so.
//!
//! Written by server-side apply, so that the devices of other drivers stay. Nothing waits for it; what the server refuses is told in the
//! agent's status and tried again.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use shunt_agent_api::{AttachmentKey, EventKind};
use shunt_kubelet::ClaimName;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

use super::driver::ClaimDriver;
use super::error::PublishError;
use super::session::within;
use crate::capacity::Quantity;
use crate::capacity::slice::DRIVER;
use crate::claims::Share;
use crate::requests::claim_usages::ClaimUsage;

/// Who writes, in the object's managed fields.
const MANAGER: &str = "shunt-agent";

/// Who remarks.
const WHO: &str = "claim status";

/// How long until what failed is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Keeps the status of all claims in use. An agent that starts says everything again.
pub(super) async fn keep(driver: Arc<ClaimDriver>) -> Infallible {
    let mut events = driver.core.subscribe();
    let mut left = Left::All;
    loop {
        let failed = left.tell(&driver).await;
        let remark =
            failed.as_ref().map(|error| format!("kubernetes: a claim's status is not written: {error}"));
        driver.core.remark(WHO, remark).await;
        if failed.is_some() {
            // One that the server refuses for good keeps no other waiting.
            left = Left::All;
            sleep(RETRY).await;
            continue;
        }
        left = match &mut events {
            None => {
                sleep(RETRY).await;
                Left::All
            }
            Some(events) => loop {
                match events.recv().await {
                    Ok(event) if event.event == EventKind::Claim => {
                        break Left::These(event.key.into_iter().collect());
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break Left::All,
                    Err(RecvError::Closed) => return std::future::pending().await,
                }
            },
        };
    }
}

/// Whose claims are to be told of.
enum Left {
    All,
    These(BTreeSet<AttachmentKey>),
}

impl Left {
    /// Writes what is left; answers the last failure.
    async fn tell(&self, driver: &ClaimDriver) -> Option<PublishError> {
        let keys = match self {
            Self::All => vec![None],
            Self::These(keys) => keys.iter().cloned().map(Some).collect(),
        };
        let mut failed = None;
        for key in keys {
            let usages = driver.core.with(move |agent| agent.node().claim_usages(key.as_ref())).await;
            for usage in usages.unwrap_or_default() {
                // A claim that is gone has no status.
                failed = write(driver, &usage).await.err().filter(|error| !error.is_not_known()).or(failed);
            }
        }
        failed
    }
}

/// Writes a claim's status, unless it says the same already.
async fn write(driver: &ClaimDriver, usage: &ClaimUsage) -> Result<(), PublishError> {
    let claim = &usage.claim;
    let (namespace, name, uid) = (claim.namespace.clone(), claim.name.clone(), claim.uid.clone());
    let found = driver.read(&ClaimName { namespace, name, uid }).await?;
    if found.metadata.uid.as_ref() != Some(&claim.uid) || is_said(&found, usage) {
        return Ok(());
    }
    let api = Api::<ResourceClaim>::namespaced(driver.client().await?, &claim.namespace);
    let params = PatchParams::apply(MANAGER).force();
    let patch = Patch::Apply(json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        // The server refuses where a claim of this name has another UID by now.
        "metadata": { "namespace": claim.namespace, "name": claim.name, "uid": claim.uid },
        "status": { "devices": status_of(usage, SystemTime::now()) },
    }));
    let written = within("writing the claim's status", api.patch_status(&claim.name, &params, &patch)).await;
    written.map(|_| tracing::debug!(%claim, "the claim's status is written"))
}

/// Whether a claim says what it is to say, at whatever time it began to.
fn is_said(found: &ResourceClaim, usage: &ClaimUsage) -> bool {
    let status = found.status.as_ref().and_then(|status| status.devices.as_ref());
    let Ok(Value::Array(said)) = serde_json::to_value(status) else { return false };
    let wanted = status_of(usage, SystemTime::UNIX_EPOCH);
    let timeless = |device: &Value| {
        let mut device = device.clone();
        if let Some(condition) = device.pointer_mut("/conditions/0").and_then(Value::as_object_mut) {
            condition.remove("lastTransitionTime");
        }
        device
    };
    let said: Vec<_> = said.iter().map(timeless).collect();
    wanted.iter().all(|device| said.contains(&timeless(device)))
}

/// What the claim's devices are to say.
fn status_of(usage: &ClaimUsage, now: SystemTime) -> Vec<Value> {
    let ClaimUsage { claim, ifname, ips, mac } = usage;
    let time = humantime::format_rfc3339_seconds(now).to_string();
    let device = |share: &Share| {
        let mut device = json!({
            "driver": DRIVER,
            "pool": share.pool,
            "device": share.device,
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "Limited",
                "message": format!(
                    "limited to egress {}, ingress {} bit/s of uplink {} at most",
                    Quantity(share.egress), Quantity(share.ingress), share.uplink
                ),
                "lastTransitionTime": time,
            }],
            "networkData": { "interfaceName": ifname, "ips": ips, "hardwareAddress": mac },
        });
        if let Some(id) = &share.share_id {
            device["shareID"] = json!(id);
        }
        device
    };
    claim.shares.iter().map(device).collect()
}
