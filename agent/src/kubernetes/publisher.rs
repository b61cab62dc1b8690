//! Who publishes: connects, holds a conversation, and begins anew when that ends.

use std::convert::Infallible;
use std::time::Instant;

use super::backoff::Backoff;
use super::books::Books;
use super::client;
use super::error::PublishError;
use super::node_capacity::NodeCapacity;
use super::node_name;
use super::session::hold;
use super::slices::Slices;
use crate::agent::Core;
use crate::capacity::slice::NodeNameError;
use crate::config::{KubernetesOptions, Publish};

/// Publishes the uplinks' bandwidth as long as the agent runs.
#[derive(Debug)]
pub struct Publisher {
    options: KubernetesOptions,
    node: String,
}

impl Publisher {
    /// Nothing is asked of the server yet, nor read.
    ///
    /// # Errors
    /// [`NodeNameError`].
    pub fn new(options: KubernetesOptions) -> Result<Self, NodeNameError> {
        let node = node_name::of_options(&options)?;
        Ok(Self { options, node })
    }

    /// Publishes, and goes on doing so, until it is dropped.
    pub async fn run(self, core: Core) -> Infallible {
        let mut books = Books::new(core);
        let mut backoff = Backoff::default();
        loop {
            let begun = Instant::now();
            let ended = self.converse(&mut books).await;
            let Some(wait) = backoff.after(begun, ended.is_ok()) else { continue };
            if let Err(error) = ended {
                tracing::warn!(%error, again_in = ?wait, "the capacity is not published");
                books.remark(Some(format!("the capacity is not published: {error}"))).await;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Credentials are read each time: they are renewed, and may be late.
    async fn converse(&self, books: &mut Books) -> Result<(), PublishError> {
        let client = client::connect(&self.options).await?;
        if self.options.publish != Publish::Node {
            match hold(&mut Slices::new(client.clone(), &self.node), books).await {
                Err(error) if error.is_not_known() && self.options.publish == Publish::Auto => {
                    tracing::info!(
                        "the API server has no resource.k8s.io/v1: the node's capacity is patched instead"
                    );
                }
                ended => return ended,
            }
        }
        hold(&mut NodeCapacity::new(client, &self.node), books).await
    }
}
