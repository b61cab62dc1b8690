//! The way to the API server.

use http_body_util::Limited;
use hyper::Response;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::util::MapResponseLayer;

use super::error::PublishError;
use super::session::PATIENCE;
use crate::config::KubernetesOptions;

/// Bytes of one answer that are read. A node's slices are some ten thousand; so are a watch's until the server ends it.
const LONGEST_ANSWER: usize = 16 << 20;

/// A client with the credentials as they are now: they are renewed, and may be late.
///
/// # Errors
/// [`PublishError`]: there are none, or they cannot be used.
pub(super) async fn connect(options: &KubernetesOptions) -> Result<Client, PublishError> {
    let mut config = match &options.kubeconfig {
        Some(path) => {
            let failed = |source| PublishError::Kubeconfig { path: path.clone(), source: Box::new(source) };
            let file = Kubeconfig::read_from(path).map_err(failed)?;
            let made = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
            made.map_err(failed)?
        }
        None => Config::incluster()?,
    };
    config.connect_timeout = Some(PATIENCE);
    // How often and when is the callers' business.
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config).map_err(|source| PublishError::Client(Box::new(source)))?;
    Ok(builder.with_layer(&MapResponseLayer::new(bounded)).build())
}

/// An answer that ends in an error where it is too long: the client itself would read on and on.
fn bounded<B>(answer: Response<B>) -> Response<Limited<B>> {
    answer.map(|body| Limited::new(body, LONGEST_ANSWER))
}
