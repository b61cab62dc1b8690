//! Watches which claims the scheduler has given bandwidth of this node: it counts them from then on, and the kubelet has them prepared
//! later, with the pod. Admission counts them, too, so that no annotation takes what they have.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use tokio::time::timeout;

use super::allocation;
use super::backoff::Backoff;
use super::driver::ClaimDriver;
use super::error::PublishError;
use super::session::within;
use crate::claims::{Claim, MAX_CLAIMS};

/// Who remarks.
const WHO: &str = "allocated claims";

/// Claims of one page: an answer has a bound.
const PAGE: u32 = 250;

/// Claims of the cluster that are looked through, at most.
const MOST: usize = 200_000;

/// As in the session of what is published.
const WATCH: u32 = 240;
const LOST: Duration = Duration::from_secs(270);

/// Watches as long as the agent runs. What was known stays so while the server is away.
pub(super) async fn follow(driver: &ClaimDriver) -> Infallible {
    let mut backoff = Backoff::default();
    loop {
        let begun = Instant::now();
        let ended = converse(driver).await;
        let Some(wait) = backoff.after(begun, ended.is_ok()) else { continue };
        match ended {
            // A server without claims allocates none.
            Err(error) if error.is_not_known() => driver.core.remark(WHO, None).await,
            Err(error) => {
                tracing::warn!(%error, again_in = ?wait, "allocated claims are not watched");
                let remark = format!(
                    "kubernetes: what the scheduler has given to claims lately is not known: {error}"
                );
                driver.core.remark(WHO, Some(remark)).await;
                *driver.client.lock().await = None;
            }
            Ok(()) => {}
        }
        tokio::time::sleep(wait).await;
    }
}

async fn converse(driver: &ClaimDriver) -> Result<(), PublishError> {
    const WATCHING: &str = "watching claims";
    let failed = |source| PublishError::Request { what: WATCHING, source: Box::new(source) };
    let api = Api::<ResourceClaim>::all(driver.client().await?);
    let (listed, version) = list(&api, &driver.node).await?;
    let params = WatchParams::default().timeout(WATCH);
    let events = within(WATCHING, api.watch(&params, &version)).await?;
    driver.core.with(move |agent| agent.node().set_allocated(listed)).await;
    driver.core.remark(WHO, None).await;
    let mut events = std::pin::pin!(events);
    loop {
        let Ok(event) = timeout(LOST, events.next()).await else {
            return Err(PublishError::Silent(WATCHING));
        };
        let Some(event) = event else { return Ok(()) };
        let (uid, claim) = match event.map_err(failed)? {
            WatchEvent::Added(found) | WatchEvent::Modified(found) => {
                (uid_of(&found), allocation::allocated(&found, &driver.node))
            }
            WatchEvent::Deleted(gone) => (uid_of(&gone), None),
            WatchEvent::Error(status) => return Err(failed(kube::Error::Api(status))),
            WatchEvent::Bookmark(_) => continue,
        };
        driver.core.with(move |agent| agent.node().allocate_claim(&uid, claim)).await;
    }
}

/// The claims that have something of the node, and the version that they are of.
async fn list(
    api: &Api<ResourceClaim>,
    node: &str,
) -> Result<(BTreeMap<String, Claim>, String), PublishError> {
    let mut allocated = BTreeMap::new();
    let mut seen = 0;
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = within("listing claims", api.list(&params)).await?;
        seen += page.items.len();
        for found in &page.items {
            if let Some(claim) = allocation::allocated(found, node)
                && allocated.len() < MAX_CLAIMS
            {
                allocated.insert(claim.uid.clone(), claim);
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if seen < MOST => params.continue_token = Some(token),
            _ => return Ok((allocated, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}

fn uid_of(claim: &ResourceClaim) -> String {
    claim.metadata.uid.clone().unwrap_or_default()
}
