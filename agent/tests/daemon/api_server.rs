//! An API server, as far as an agent that publishes can tell: it keeps slices and a node, streams what changes, and can be
//! made to forbid, to answer nonsense, to drop fields and to go away.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::api_answer::Answer;
use crate::api_store::{Ask, Store};
use crate::rig::Rig;

/// Where it listens in the node's namespace.
const ADDRESS: &str = "127.0.0.1:6443";

pub(crate) struct ApiServer {
    store: Arc<Mutex<Store>>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl ApiServer {
    /// A server with an empty store, listening.
    pub(crate) fn start(rig: &Rig) -> Self {
        let mut server = Self { store: Arc::default(), running: None };
        server.come_back(rig);
        server
    }

    /// Listens again, with what it had.
    pub(crate) fn come_back(&mut self, rig: &Rig) {
        let listener = rig.node.enter(|| TcpListener::bind(ADDRESS).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = oneshot::channel();
        let store = Arc::clone(&self.store);
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = listen(listener, store) => {}
                    _ = stopped => {}
                }
            });
        };
        self.running = Some((stop, std::thread::spawn(serve)));
    }

    /// Closes every connection, and listens no more.
    pub(crate) fn go_away(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            // It ends by itself where its thread has panicked.
            let _gone = stop.send(());
            drop(thread.join());
        }
    }

    /// A kubeconfig for it.
    pub(crate) fn kubeconfig() -> Value {
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "here", "cluster": { "server": format!("http://{ADDRESS}") } }],
            "users": [{ "name": "agent", "user": { "token": "secret" } }],
            "contexts": [{ "name": "it", "context": { "cluster": "here", "user": "agent" } }],
            "current-context": "it",
        })
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.go_away();
    }
}

async fn listen(listener: TcpListener, store: Arc<Mutex<Store>>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    loop {
        let (stream, _): (_, SocketAddr) = listener.accept().await.unwrap();
        let store = Arc::clone(&store);
        let service = service_fn(move |request| answer(request, Arc::clone(&store)));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(connection);
    }
}

async fn answer(
    request: Request<Incoming>,
    store: Arc<Mutex<Store>>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let ask = Ask {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().replace("%3D", "="),
        kind: head.headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned()),
        body: body.collect().await?.to_bytes(),
    };
    let lag = store.lock().unwrap().lag;
    // The shortest sleep takes a turn of the timer, a millisecond or two.
    if !lag.is_zero() {
        tokio::time::sleep(lag).await;
    }
    let answer = store.lock().unwrap().answer(&ask);
    let (status, body) = match answer {
        Answer::Said(status, text) => (status, Full::from(text).boxed()),
        Answer::Endless => (200, Endless.boxed()),
        Answer::Stream(lines) => (200, Lines(lines).boxed()),
    };
    let response = Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(body).unwrap())
}

/// A body that goes on as long as somebody reads it.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 16 << 10])))))
    }
}

/// A body that goes on as long as somebody sends lines.
struct Lines(mpsc::UnboundedReceiver<String>);

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|line| line.map(|line| Ok(Frame::data(Bytes::from(line)))))
    }
}
