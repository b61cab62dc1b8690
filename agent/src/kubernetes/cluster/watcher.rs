//! Watches the nodes: lists them by pages once, and from then on goes on where the watch before it ended. They are listed anew only
//! when the server no longer has what came behind that (410).

use std::convert::Infallible;
use std::time::Instant;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;

use super::learned::{Known, MOST, learn};
use crate::config::KubernetesOptions;
use crate::kubernetes::backoff::Backoff;
use crate::kubernetes::client;
use crate::kubernetes::error::PublishError;
use crate::kubernetes::resumed::{Resumed, Told};
use crate::kubernetes::session::within;

/// Nodes of one page: an answer has a bound, and a node some ten thousand bytes.
const PAGE: u32 = 250;

/// Watches until the agent ends.
pub(super) async fn follow(
    options: KubernetesOptions,
    node: String,
    known: watch::Sender<Known>,
) -> Infallible {
    let mut backoff = Backoff::default();
    let mut watcher = Watcher { options, node, known, place: Resumed::new("watching the nodes") };
    loop {
        let begun = Instant::now();
        let ended = watcher.converse().await;
        let Some(wait) = backoff.after(begun, ended.is_ok()) else { continue };
        if let Err(error) = ended {
            tracing::warn!(%error, again_in = ?wait, "the cluster's nodes are not watched");
            watcher.known.send_modify(|known| known.fault = Some(error.to_string()));
        }
        tokio::time::sleep(wait).await;
    }
}

struct Watcher {
    options: KubernetesOptions,
    node: String,
    known: watch::Sender<Known>,
    place: Resumed,
}

impl Watcher {
    /// One watch, with a list before it where there has to be one.
    async fn converse(&mut self) -> Result<(), PublishError> {
        let api: Api<Node> = Api::all(client::connect(&self.options).await?);
        if self.place.is_unlisted() {
            let (listed, version) = list(&api, &self.node).await?;
            self.known.send_replace(listed);
            self.place.listed(version);
        }
        let ended = self.watch(&api).await;
        self.place.ended(ended)
    }

    async fn watch(&mut self, api: &Api<Node>) -> Result<(), PublishError> {
        let mut events = std::pin::pin!(self.place.open(api).await?);
        self.known.send_if_modified(|known| known.fault.take().is_some());
        while let Some(told) = self.place.next(&mut events).await? {
            self.known.send_if_modified(|known| match told {
                Told::Is(node) => learn(known, &self.node, &node),
                Told::Gone(node) => known.members.0.remove(&node.name_any()).is_some(),
            });
        }
        Ok(())
    }
}

/// All nodes, and the version that they are of.
async fn list(api: &Api<Node>, node: &str) -> Result<(Known, String), PublishError> {
    let mut known = Known::default();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = within("listing the nodes", api.list(&params)).await?;
        for listed in &page.items {
            learn(&mut known, node, listed);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if known.members.0.len() < MOST => params.continue_token = Some(token),
            _ => return Ok((known, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}
