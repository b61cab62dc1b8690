//! Which service a call is for: by the first part of its path, `/PACKAGE.SERVICE/METHOD`; its message, its place, and its deadline.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;
use tonic_health::server::health_reporter;
use tonic_reflection::server::{Builder, Error};

use crate::DESCRIPTORS;
use crate::answer::until_read;
use crate::asked::Shared;
use crate::caller::{Caller, Watchers};
use crate::calls::Calls;
use crate::deadline;
use crate::draft::Draft;
use crate::failure::{Failure, codes};
use crate::gate::Gate;
use crate::inbox::Message;
use crate::proto::draft::cni_server::CniServer;
use crate::proto::v1::cni_service_server::CniServiceServer;

/// Bytes of a call's message. A GC list of ten thousand attachments has 800,000.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;

/// Bytes of a question to the health and the reflection services, which name a service or a symbol.
const MAX_QUESTION: usize = 4 << 10;

const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const OLDER_REFLECTION: &str = "grpc.reflection.v1alpha.ServerReflection";

/// The descriptors of the messages cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the messages of the CNI service cannot be described: {0}")]
pub struct DescriptorError(#[from] Error);

/// A service whose type nobody can name.
type Unnamed = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<Response<Body>, Infallible> + Send + Sync>;

/// What the socket serves.
#[derive(Clone)]
pub(crate) struct Services {
    calls: CniServiceServer<Calls>,
    draft: CniServer<Draft>,
    health: Unnamed,
    reflection: Unnamed,
    older_reflection: Unnamed,
}

impl Services {
    pub(crate) async fn new(shared: Shared) -> Result<Self, DescriptorError> {
        let (reporter, health) = health_reporter();
        reporter.set_serving::<CniServiceServer<Calls>>().await;
        reporter.set_serving::<CniServer<Draft>>().await;
        let health = health.max_decoding_message_size(MAX_QUESTION);
        let described = || Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS);
        let reflection = described().build_v1()?.max_decoding_message_size(MAX_QUESTION);
        let older = described().build_v1alpha()?.max_decoding_message_size(MAX_QUESTION);
        let calls = Calls(Arc::new(shared));
        Ok(Self {
            draft: CniServer::new(Draft(calls.clone())).max_decoding_message_size(MAX_MESSAGE),
            calls: CniServiceServer::new(calls).max_decoding_message_size(MAX_MESSAGE),
            health: unnamed(health),
            reflection: unnamed(reflection),
            older_reflection: unnamed(older),
        })
    }

    /// Answers a call.
    pub(crate) async fn call(
        mut self,
        request: Request<Incoming>,
        gate: Gate,
        caller: Caller,
    ) -> Result<Response<Body>, Infallible> {
        match service_of(&request) {
            Some(HEALTH) => (self.health)(request).await,
            Some(REFLECTION) => (self.reflection)(request).await,
            Some(OLDER_REFLECTION) => (self.older_reflection)(request).await,
            _ => {
                let patience = deadline::of(request.headers());
                let done = timeout(patience, self.call_in_turn(request, gate, caller)).await;
                done.unwrap_or_else(|_| {
                    let why = format!("not done within {patience:?}; what is done of an Add will be undone");
                    Ok(Status::deadline_exceeded(why).into_http())
                })
            }
        }
    }

    /// Reads the message, waits for a place, and keeps the call until its answer is read.
    async fn call_in_turn(
        &mut self,
        request: Request<Incoming>,
        gate: Gate,
        caller: Caller,
    ) -> Result<Response<Body>, Infallible> {
        let full = || Ok(Failure::new(codes::TRY_AGAIN, "too many calls, try again").to_status().into_http());
        let Some(call) = gate.calls.take(caller.user) else { return full() };
        let (mut head, body) = request.into_parts();
        let Message { bytes, room } = match gate.inbox.read(body).await {
            Ok(message) => message,
            Err(refused) => return Ok(refused.into_http()),
        };
        let Some(place) = gate.enter().await else { return full() };
        drop(room);
        head.extensions.insert(Watchers(gate.watchers));
        head.extensions.insert(caller);
        head.extensions.insert(place);
        let request = Request::from_parts(head, Full::new(bytes));
        let response = match service_of(&request) {
            Some(<CniServer<Draft> as NamedService>::NAME) => self.draft.call(request).await?,
            _ => self.calls.call(request).await?,
        };
        Ok(until_read(response, call).await)
    }
}

fn service_of<B>(request: &Request<B>) -> Option<&str> {
    request.uri().path().split('/').nth(1)
}

fn unnamed<S>(service: S) -> Unnamed
where
    S: Service<
            Request<Incoming>,
            Response = Response<Body>,
            Error = Infallible,
            Future = BoxFuture<Response<Body>, Infallible>,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    Arc::new(move |request| service.clone().call(request))
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
