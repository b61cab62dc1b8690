//! A client of the service on its socket: tonic's stub for a runtime, and one that waits for whoever has none.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{error::Elapsed, timeout};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::proto::v1::cni_service_client::CniServiceClient;
use crate::proto::v1::{ListAttachmentsRequest, ListNetworksRequest, ListedAttachment};

/// A socket has no name that could be an authority.
const ORIGIN: &str = "http://localhost";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens, or one may not connect.
    #[error("{0}")]
    Unreachable(#[from] io::Error),
    /// The other end speaks no HTTP/2.
    #[error("what listens is not the CNI service: {0}")]
    Protocol(#[from] hyper::Error),
    /// Whoever listens has ended the connection instead.
    #[error(
        "the connection ended without an answer ({0}): what listens may be something else than the CNI service"
    )]
    Ended(String),
    /// The service has refused.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
    /// Nothing was said.
    #[error("no answer within {PATIENCE:?}")]
    Late(#[from] Elapsed),
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        let source = std::error::Error::source(&status);
        match source.and_then(|source| source.downcast_ref::<hyper::Error>()) {
            Some(error) => Self::Ended(error.to_string()),
            None => Self::Refused(Box::new(status)),
        }
    }
}

/// A connection, as the stubs that tonic makes want it.
#[derive(Clone, Debug)]
pub struct Channel(SendRequest<Body>);

impl Channel {
    /// Connects within a runtime of tokio's, which drives the connection until the last clone is dropped.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`], [`ClientError::Protocol`].
    pub async fn connect(socket: &Path) -> Result<Self, ClientError> {
        Self::over(UnixStream::connect(socket).await?).await
    }

    /// The same over a connection that is there.
    pub(crate) async fn over(stream: UnixStream) -> Result<Self, ClientError> {
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// The stub of CNI as a service on this connection.
    #[must_use]
    pub fn stub(self) -> CniServiceClient<Self> {
        CniServiceClient::with_origin(self, Uri::from_static(ORIGIN))
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// A client that waits for its answers.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    stub: CniServiceClient<Channel>,
}

impl Client {
    /// # Errors
    /// Nobody listens at `socket`, or something else than the service does.
    pub fn connect(socket: &Path) -> Result<Self, ClientError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connected = runtime.block_on(async {
            timeout(PATIENCE, Channel::connect(socket)).await.map_err(ClientError::from)?
        });
        Ok(Self { stub: connected?.stub(), runtime })
    }

    /// The names of the registered networks, sorted.
    ///
    /// # Errors
    /// The service's.
    pub fn networks(&mut self) -> Result<Vec<String>, ClientError> {
        let asked = self.stub.list_networks(ListNetworksRequest {});
        let answer = self.runtime.block_on(async { timeout(PATIENCE, asked).await })??;
        Ok(answer.into_inner().names)
    }

    /// The attachments of a network, or with an empty name of all of them.
    ///
    /// # Errors
    /// The service's.
    pub fn attachments(&mut self, network: &str) -> Result<Vec<ListedAttachment>, ClientError> {
        let mut request =
            ListAttachmentsRequest { network: network.to_owned(), ..ListAttachmentsRequest::default() };
        let mut found = Vec::new();
        loop {
            let asked = self.stub.list_attachments(request.clone());
            let page = self.runtime.block_on(async { timeout(PATIENCE, asked).await })??.into_inner();
            found.extend(page.attachments);
            // The tokens of a server ascend; one that does not would be asked for ever.
            if page.next_page_token <= request.page_token {
                return Ok(found);
            }
            request.page_token = page.next_page_token;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_socket_of_something_else_is_said_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        let other = thread::spawn(move || drop(listener.accept().unwrap()));
        let said = Client::connect(&path).and_then(|mut client| client.networks()).unwrap_err().to_string();
        assert!(said.contains("something else") || said.contains("not the CNI service"), "{said}");
        other.join().unwrap();
    }
}
