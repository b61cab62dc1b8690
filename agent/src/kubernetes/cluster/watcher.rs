//! Watches the nodes: lists them by pages once, and from then on goes on where the watch before it ended. They are listed anew only
//! when the server no longer has what came behind that (410).

use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::timeout;

use super::learned::{Known, MOST, learn};
use crate::config::KubernetesOptions;
use crate::kubernetes::backoff::Backoff;
use crate::kubernetes::client;
use crate::kubernetes::error::PublishError;
use crate::kubernetes::session::within;

/// Nodes of one page: an answer has a bound, and a node some ten thousand bytes.
const PAGE: u32 = 250;

/// The server ends a watch after so many seconds: credentials are read anew then. A bookmark says now and then how far it has come.
const WATCH: u32 = 240;

/// A watch that says nothing for so long has lost its server, which was to end it.
const LOST: Duration = Duration::from_secs(270);

const WATCHING: &str = "watching the nodes";

/// Watches until the agent ends.
pub(super) async fn follow(
    options: KubernetesOptions,
    node: String,
    known: watch::Sender<Known>,
) -> Infallible {
    let mut backoff = Backoff::default();
    let mut watcher = Watcher { options, node, known, version: None };
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
    /// The version that everything up to is known; none before the nodes are listed.
    version: Option<String>,
}

impl Watcher {
    /// One watch, with a list before it where there has to be one.
    async fn converse(&mut self) -> Result<(), PublishError> {
        let api: Api<Node> = Api::all(client::connect(&self.options).await?);
        let version = match &self.version {
            Some(version) => version.clone(),
            None => {
                let (listed, version) = list(&api, &self.node).await?;
                self.known.send_replace(listed);
                self.version.insert(version).clone()
            }
        };
        match self.watch(&api, &version).await {
            Err(error) if error.is_of_unknown_version() => {
                tracing::info!(
                    version,
                    "the server no longer knows what came behind: the nodes are listed anew"
                );
                self.version = None;
                Ok(())
            }
            // An answer that has become too long, or was cut off: what came of it holds.
            Err(PublishError::Request { source, .. })
                if matches!(*source, kube::Error::ReadEvents(_))
                    && self.version.as_ref() != Some(&version) =>
            {
                Ok(())
            }
            ended => ended,
        }
    }

    async fn watch(&mut self, api: &Api<Node>, version: &str) -> Result<(), PublishError> {
        let failed = |source| PublishError::Request { what: WATCHING, source: Box::new(source) };
        let params = WatchParams { bookmarks: true, ..WatchParams::default() }.timeout(WATCH);
        let events = within(WATCHING, api.watch(&params, version)).await?;
        self.known.send_if_modified(|known| known.fault.take().is_some());
        let mut events = std::pin::pin!(events);
        loop {
            let Ok(event) = timeout(LOST, events.next()).await else {
                return Err(PublishError::Silent(WATCHING));
            };
            let Some(event) = event else { return Ok(()) };
            let reached = match event.map_err(failed)? {
                WatchEvent::Added(changed) | WatchEvent::Modified(changed) => {
                    self.known.send_if_modified(|known| learn(known, &self.node, &changed));
                    changed.metadata.resource_version
                }
                WatchEvent::Deleted(gone) => {
                    let forget = |known: &mut Known| known.members.0.remove(&gone.name_any()).is_some();
                    self.known.send_if_modified(forget);
                    gone.metadata.resource_version
                }
                WatchEvent::Bookmark(bookmark) => Some(bookmark.metadata.resource_version),
                WatchEvent::Error(status) => return Err(failed(kube::Error::Api(status))),
            };
            self.version = reached.filter(|version| !version.is_empty()).or_else(|| self.version.take());
        }
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
