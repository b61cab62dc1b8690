//! Watches which claims the scheduler has given bandwidth of this node: it counts them from then on, and the kubelet has them prepared
//! later, with the pod. Admission counts them, too, so that no annotation takes what they have.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Instant;

use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::ListParams;

use super::allocation;
use super::backoff::Backoff;
use super::driver::ClaimDriver;
use super::error::PublishError;
use super::resumed::{Resumed, Told};
use super::session::within;
use crate::claims::{Claim, MAX_CLAIMS};

/// Who remarks.
const WHO: &str = "allocated claims";

/// Claims of one page: an answer has a bound.
const PAGE: u32 = 250;

/// Claims of the cluster that are looked through, at most.
const MOST: usize = 200_000;

/// Watches as long as the agent runs. What was known stays so while the server is away.
pub(super) async fn follow(driver: &ClaimDriver) -> Infallible {
    let mut backoff = Backoff::default();
    let mut watcher =
        Watcher { driver, place: Resumed::new("watching claims"), known: BTreeSet::new(), is_cut: false };
    loop {
        let begun = Instant::now();
        let ended = watcher.converse().await;
        let Some(wait) = backoff.after(begun, ended.is_ok()) else { continue };
        match ended {
            Err(error) if error.is_not_known() => watcher.none().await,
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

struct Watcher<'a> {
    driver: &'a ClaimDriver,
    place: Resumed,
    /// The UIDs of the claims that have something of the node: the agent hears of no others.
    known: BTreeSet<String>,
    is_cut: bool,
}

impl Watcher<'_> {
    /// A server without claims allocates none.
    async fn none(&mut self) {
        self.place.forget();
        self.set(BTreeMap::new()).await;
        self.driver.core.remark(WHO, None).await;
    }

    async fn set(&mut self, claims: BTreeMap<String, Claim>) {
        self.known = claims.keys().cloned().collect();
        self.driver.core.with(move |agent| agent.node().set_allocated(claims)).await;
    }

    /// One watch, with a list before it where there has to be one.
    async fn converse(&mut self) -> Result<(), PublishError> {
        let api = Api::<ResourceClaim>::all(self.driver.client().await?);
        if self.place.is_unlisted() {
            let listed = list(&api, &self.driver.node).await?;
            self.is_cut = listed.is_cut;
            self.set(listed.claims).await;
            self.place.listed(listed.version);
        }
        let ended = self.watch(&api).await;
        self.place.ended(ended)
    }

    async fn watch(&mut self, api: &Api<ResourceClaim>) -> Result<(), PublishError> {
        let mut events = std::pin::pin!(self.place.open(api).await?);
        let cut =
            || format!("kubernetes: of the cluster's claims the first {MOST} are counted, and no others");
        self.driver.core.remark(WHO, self.is_cut.then(cut)).await;
        while let Some(told) = self.place.next(&mut events).await? {
            match told {
                Told::Is(found) => self.hear(&found, allocation::allocated(&found, &self.driver.node)).await,
                Told::Gone(gone) => self.hear(&gone, None).await,
            }
        }
        Ok(())
    }

    /// Tells the agent what the claim has of the node now, if it has or had anything.
    async fn hear(&mut self, found: &ResourceClaim, claim: Option<Claim>) {
        let uid = found.metadata.uid.clone().unwrap_or_default();
        let was_known = match claim {
            Some(_) => !self.known.insert(uid.clone()),
            None => self.known.remove(&uid),
        };
        if was_known || claim.is_some() {
            self.driver.core.with(move |agent| agent.node().allocate_claim(&uid, claim)).await;
        }
    }
}

struct Listed {
    /// The claims that have something of the node, by their UIDs.
    claims: BTreeMap<String, Claim>,
    /// The version that they are of.
    version: String,
    /// Whether there are more claims than are looked through.
    is_cut: bool,
}

/// The claims that have something of the node.
async fn list(api: &Api<ResourceClaim>, node: &str) -> Result<Listed, PublishError> {
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
            more => {
                return Ok(Listed {
                    claims: allocated,
                    version: page.metadata.resource_version.unwrap_or_default(),
                    is_cut: more.is_some(),
                });
            }
        }
    }
}
