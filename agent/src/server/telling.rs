//! Who is told of the agent without asking at its socket: readers of metrics, and Kubernetes.

use tokio::task::JoinSet;

use super::error::ServerError;
use crate::agent::Core;
use crate::config::Config;
#[cfg(feature = "kubernetes")]
use crate::kubernetes::{ClusterNetwork, NodePlugin, Publisher, Recorder};
use crate::metrics::Metrics;

/// What tells them, as far as the configuration asks for it.
#[derive(Debug)]
pub(super) struct Telling {
    metrics: Option<Metrics>,
    #[cfg(feature = "kubernetes")]
    publisher: Option<Publisher>,
    #[cfg(feature = "kubernetes")]
    recorder: Option<Recorder>,
    #[cfg(feature = "kubernetes")]
    node_plugin: Option<NodePlugin>,
    #[cfg(feature = "kubernetes")]
    cluster: Option<ClusterNetwork>,
}

impl Telling {
    /// Opens the way to each.
    ///
    /// # Errors
    /// [`ServerError::Metrics`], [`ServerError::Kubernetes`].
    pub(super) async fn open(config: &Config) -> Result<Self, ServerError> {
        let metrics = match config.metrics {
            Some(address) => Some(Metrics::bind(address, config.metrics_labels).await?),
            None => None,
        };
        #[cfg(feature = "kubernetes")]
        let options = config.kubernetes.as_ref();
        #[cfg(feature = "kubernetes")]
        let kubelet = options.and_then(|options| Some((options, options.kubelet()?.to_owned())));
        Ok(Self {
            metrics,
            #[cfg(feature = "kubernetes")]
            publisher: config.kubernetes.clone().map(Publisher::new).transpose()?,
            #[cfg(feature = "kubernetes")]
            recorder: config.kubernetes.clone().map(Recorder::new).transpose()?,
            #[cfg(feature = "kubernetes")]
            node_plugin: kubelet.map(|(options, root)| NodePlugin::new(options, root)).transpose()?,
            #[cfg(feature = "kubernetes")]
            cluster: ClusterNetwork::of(config)?,
        })
    }

    /// Begins to tell them, until the set is shut down.
    pub(super) fn begin(self, core: &Core) -> JoinSet<()> {
        let mut telling = JoinSet::new();
        if let Some(metrics) = self.metrics {
            telling.spawn(metrics.serve(core.clone()));
        }
        #[cfg(feature = "kubernetes")]
        if let Some(publisher) = self.publisher {
            let publishing = publisher.run(core.clone());
            telling.spawn(async { match publishing.await {} });
        }
        #[cfg(feature = "kubernetes")]
        if let Some(recorder) = self.recorder {
            let recording = recorder.run(core.clone());
            telling.spawn(async { match recording.await {} });
        }
        #[cfg(feature = "kubernetes")]
        if let Some(plugin) = self.node_plugin {
            let serving = plugin.run(core.clone());
            telling.spawn(async { match serving.await {} });
        }
        #[cfg(feature = "kubernetes")]
        if let Some(cluster) = self.cluster {
            let keeping = cluster.run(core.clone());
            telling.spawn(async { match keeping.await {} });
        }
        telling
    }
}
