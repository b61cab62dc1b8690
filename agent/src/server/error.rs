//! Why the agent does not run.

use std::io;

use super::cni_service::CniServiceError;
use super::listener::ListenerError;
use crate::agent::CoreError;
use crate::capacity::slice::NodeNameError;
use crate::metrics::MetricsError;

/// Why the agent does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The socket.
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// CNI as a service.
    #[error(transparent)]
    Cni(#[from] CniServiceError),
    /// State or kernel.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The address for metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The node's name in Kubernetes.
    #[error(transparent)]
    Kubernetes(#[from] NodeNameError),
    /// Netlink, signals or a timer.
    #[error("{what}: {source}")]
    Io {
        /// What was wanted.
        what: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
}

pub(super) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> ServerError {
    move |source| ServerError::Io { what, source }
}
