//! Why nothing is published.

use std::path::PathBuf;

use kube::config::{InClusterError, KubeconfigError};
use kube::core::Status;

/// Why nothing is published for now.
#[derive(Debug, thiserror::Error)]
pub(super) enum PublishError {
    /// The kubeconfig cannot be used.
    #[error("{}: {source}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// The agent is in no pod that has a service account, and no kubeconfig is named.
    #[error("no kubeconfig is configured, and this is no pod with a service account: {0}")]
    NotInCluster(#[from] InClusterError),
    /// The server's address or the credentials cannot be used.
    #[error("no client can be made: {0}")]
    Client(Box<kube::Error>),
    /// The server refused, could not be reached, or answered what is no answer.
    #[error("{what}: {}", said(source))]
    Request {
        /// What was wanted.
        what: &'static str,
        /// What came of it.
        source: Box<kube::Error>,
    },
    /// The server took too long.
    #[error("{0}: the API server does not answer")]
    Silent(&'static str),
    /// The server's answer is one that makes no sense.
    #[error("{0}: the API server answered what cannot be")]
    Nonsense(&'static str),
    /// Somebody else writes whenever the agent does.
    #[error("{0}: somebody else writes it too, again and again")]
    Contested(&'static str),
}

impl PublishError {
    /// Whether the server has no such kind of object at all.
    pub(super) fn is_not_known(&self) -> bool {
        matches!(self, Self::Request { source, .. } if matches!(&**source, kube::Error::Api(status) if status.code == 404))
    }

    /// Whether the server knows such objects, and has none of this name: one that knows no such kind names none.
    pub(super) fn is_of_missing(&self, name: &str) -> bool {
        let names = |status: &Status| status.details.as_ref().is_some_and(|details| details.name == name);
        matches!(self, Self::Request { source, .. }
            if matches!(&**source, kube::Error::Api(status) if status.code == 404 && names(status)))
    }

    /// Whether the server has forgotten what came behind a version (410), or has never known the version, as after a backup was restored
    /// (504, "too large resource version").
    pub(super) fn is_of_unknown_version(&self) -> bool {
        let is_unknown = |code| matches!(code, 400 | 410 | 504);
        matches!(self, Self::Request { source, .. } if matches!(&**source, kube::Error::Api(status) if is_unknown(status.code)))
    }

    /// Whether an answer that came by and by was cut off, or has become too long.
    pub(super) fn is_of_broken_answer(&self) -> bool {
        matches!(self, Self::Request { source, .. } if matches!(**source, kube::Error::ReadEvents(_)))
    }

    /// Whether another try of the same object comes to the same: it is malformed, or there is no place for it.
    pub(super) fn is_about_the_object(&self) -> bool {
        match self {
            Self::Nonsense(_) => true,
            Self::Request { source, .. } => {
                matches!(&**source, kube::Error::Api(status)
                    if matches!(status.code, 400 | 404 | 405 | 409 | 413 | 422) || is_of_ending_namespace(status))
            }
            _ => false,
        }
    }
}

/// Whether nothing is made in a namespace any more, as it is being deleted (`NamespaceTerminating`, a 403 like a missing right).
fn is_of_ending_namespace(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// What is between a person and a fault, in one line.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
        kube::Error::Service(source) => {
            let mut said = source.to_string();
            let mut cause = source.source();
            while let Some(next) = cause {
                let text = next.to_string();
                if !said.contains(&text) {
                    said = format!("{said}: {text}");
                }
                cause = next.source();
            }
            said
        }
        other => other.to_string(),
    }
}
