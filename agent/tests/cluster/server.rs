//! An API server that listens in several namespaces, and can go away.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use bytes::Bytes;
use futures_util::stream::poll_fn;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use shunt_lab::Namespace;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::nodes::{Answer, Nodes};

/// Where it listens in each namespace.
pub(crate) const ADDRESS: &str = "127.0.0.1:6443";

#[derive(Default)]
pub(crate) struct Server {
    nodes: Arc<Mutex<Nodes>>,
    running: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Server {
    pub(crate) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap()
    }

    /// Listens in a namespace as well.
    pub(crate) fn listen(&mut self, namespace: &Namespace) {
        let listener = namespace.enter(|| TcpListener::bind(ADDRESS).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = oneshot::channel();
        let nodes = Arc::clone(&self.nodes);
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, nodes) => {}
                    _ = stopped => {}
                }
            });
        };
        self.running.push((stop, std::thread::spawn(serve)));
    }

    /// Closes every connection, and listens nowhere.
    pub(crate) fn go_away(&mut self) {
        for (stop, thread) in self.running.drain(..) {
            // It ends by itself where its thread has panicked.
            let _gone = stop.send(());
            drop(thread.join());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.go_away();
    }
}

async fn serve(listener: TcpListener, nodes: Arc<Mutex<Nodes>>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let nodes = Arc::clone(&nodes);
        let service = service_fn(move |request| answer(request, Arc::clone(&nodes)));
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    nodes: Arc<Mutex<Nodes>>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let query = head.uri.query().unwrap_or_default();
    let answer = nodes.lock().unwrap().answer(head.method.as_str(), head.uri.path(), query, &body);
    let (status, body) = match answer {
        Answer::Said(status, text) => (status, Full::from(text).boxed_unsync()),
        Answer::Stream(mut lines) => {
            let frames = poll_fn(move |context| {
                lines.poll_recv(context).map(|line| line.map(|line| Ok(Frame::data(Bytes::from(line)))))
            });
            (200, StreamBody::new(frames).boxed_unsync())
        }
    };
    let response = Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(body).unwrap())
}
