//! Metrics over HTTP for Prometheus: `GET /metrics` says what the agent knows at that moment, `GET /healthz` whether an ADD
//! would work. Nothing is kept between scrapes but the tally of a large table of connections, for five seconds at most, and, where figures
//! are sums (`metrics_labels`), what came by host ports that are gone.

mod exposition;
mod host_ports;
mod labels;
#[cfg(test)]
mod monitoring;
#[cfg(test)]
mod reference;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request as Ask, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use shunt_agent_api::{AgentStatus, Reply, Request};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use exposition::{Snapshot, text};

use self::host_ports::GoneHostPorts;
use crate::agent::Core;
use crate::config::MetricsLabels;
use crate::requests::query::traffic::TrafficReport;

/// Scrapers at a time; more of them wait in the kernel's backlog.
const MAX_CONNECTIONS: usize = 16;

/// How long a scrape may take. A scraper that does not read is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

const PLAIN: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The address cannot be served on.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be served on {address}: {source}")]
pub struct MetricsError {
    /// What was asked for.
    pub address: SocketAddr,
    /// The kernel's word.
    pub source: io::Error,
}

/// A bound address, not served yet.
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
    labels: MetricsLabels,
}

/// What answers scrapers.
#[derive(Debug)]
struct Source {
    core: Core,
    labels: MetricsLabels,
    /// One snapshot at a time: with an older one after a newer one, host ports would seem to be gone.
    gone: Mutex<GoneHostPorts>,
}

impl Metrics {
    /// Binds the address, in the network namespace of the caller.
    ///
    /// # Errors
    /// [`MetricsError`], when another process listens there or the address is not the node's.
    pub async fn bind(address: SocketAddr, labels: MetricsLabels) -> Result<Self, MetricsError> {
        let failed = |source| MetricsError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, "serving metrics");
        Ok(Self { listener, labels })
    }

    /// Answers scrapers until it is dropped.
    pub async fn serve(self, core: Core) {
        let mut connections = JoinSet::new();
        let source = Arc::new(Source { core, labels: self.labels, gone: Mutex::default() });
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => _ = connections.spawn(timeout(PATIENCE, converse(stream, Arc::clone(&source)))),
                    Err(error) => {
                        tracing::warn!(%error, "a scraper was not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn converse(stream: TcpStream, source: Arc<Source>) {
    let service = service_fn(move |ask| answer(ask, Arc::clone(&source)));
    let mut server = http1::Builder::new();
    server.keep_alive(false).timer(TokioTimer::new());
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a scraper was disconnected");
    }
}

async fn answer(ask: Ask<Incoming>, source: Arc<Source>) -> Result<Response<Full<Bytes>>, Infallible> {
    let core = &source.core;
    let (status, kind, text) = match (ask.method(), ask.uri().path()) {
        (&Method::GET, "/metrics") => match snapshot(&source).await {
            Ok(snapshot) => match written(snapshot).await {
                Ok(text) => (StatusCode::OK, OPEN_METRICS, text),
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, PLAIN, error),
            },
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, why),
        },
        (&Method::GET, "/healthz") => judged(core, |status| status.reasons).await,
        (&Method::GET, "/readyz") => judged(core, |status| status.obstacles).await,
        (&Method::GET, "/livez") => judged(core, |_| Vec::new()).await,
        (&Method::GET, _) => {
            (StatusCode::NOT_FOUND, PLAIN, "there are /metrics, /healthz, /readyz and /livez\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET\n".to_owned()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}

/// The snapshot's text. A thread that ends with it writes it: of thousands of ports it takes a while, and the runtime's thread serves the
/// agent's clients.
async fn written(snapshot: Snapshot) -> Result<String, String> {
    let (told, written) = oneshot::channel();
    let write = move || {
        // The scraper may have gone.
        let _gone = told.send(text(&snapshot));
    };
    thread::Builder::new().name("metrics".into()).spawn(write).map_err(|error| error.to_string())?;
    match written.await {
        Ok(text) => text.map_err(|error| error.to_string()),
        Err(_) => Err("the thread that writes the metrics has ended".to_owned()),
    }
}

/// Everything that is told, one question after the other.
async fn snapshot(source: &Source) -> Result<Snapshot, String> {
    let Source { core, labels, gone } = source;
    let mut gone = gone.lock().await;
    let refused = |reply| match reply {
        Reply::Error(error) => error.message,
        other => format!("an answer to another question: {other:?}"),
    };
    let status = match core.ask(Request::Status).await {
        Reply::Status(status) => status,
        other => return Err(refused(other)),
    };
    let TrafficReport { ports, drops, departed } = core.traffic().await.map_err(|error| error.message)?;
    let mappings = match core.ask(Request::Mappings).await {
        Reply::Mappings(mappings) => mappings,
        other => return Err(refused(other)),
    };
    let capacity = match core.ask(Request::Capacity).await {
        Reply::Capacity(capacity) => capacity,
        other => return Err(refused(other)),
    };
    let gone_host_ports = if labels.are_sums() { gone.see(&mappings).clone() } else { BTreeMap::new() };
    Ok(Snapshot { status, ports, mappings, drops, capacity, labels: *labels, departed, gone_host_ports })
}

/// Healthy is an agent with nothing wrong, ready one of which an ADD would succeed, and alive one that answers.
async fn judged(core: &Core, wrong: fn(AgentStatus) -> Vec<String>) -> (StatusCode, &'static str, String) {
    match core.ask(Request::Status).await {
        Reply::Status(status) => match wrong(status) {
            wrong if wrong.is_empty() => (StatusCode::OK, PLAIN, "ok\n".to_owned()),
            wrong => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, wrong.join("\n") + "\n"),
        },
        other => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{other:?}\n")),
    }
}
