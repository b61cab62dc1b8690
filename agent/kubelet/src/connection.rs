//! One connection of a kubelet's: HTTP/2 with small bounds.

use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::UnixStream;

use crate::services::Services;

/// Calls at a time on one connection.
const MAX_CALLS: u32 = 32;

/// Bytes of a call that may come before they are read, and of its header.
const WINDOW: u32 = 64 << 10;
const MAX_HEADER: u32 = 16 << 10;

/// How often it is seen whether anybody is there, and how long that may take to answer.
const ALIVE: Duration = Duration::from_secs(60);
const SILENT: Duration = Duration::from_secs(20);

/// Serves a connection until either side ends it.
pub(crate) async fn converse(stream: UnixStream, services: impl Services) {
    let serving = service_fn(move |request| services.call(request));
    let mut protocol = http2::Builder::new(TokioExecutor::new());
    protocol
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_CALLS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_header_list_size(MAX_HEADER)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(SILENT);
    if let Err(error) = protocol.serve_connection(TokioIo::new(stream), serving).await {
        tracing::debug!(%error, "a kubelet's connection ended");
    }
}
