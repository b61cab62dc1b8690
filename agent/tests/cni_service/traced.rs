//! One trace through a call: who is asked passes it on, and the agent's log lines and events have its id.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::json;
use shunt_agent_api::{
    AttachmentKey, Bandwidth, Client as AgentClient, Event, EventKind, Reply, Request as AgentRequest,
};
use shunt_cni::proto::v1;
use shunt_lab::{Namespace, Network, patience};
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, async_trait};

use crate::watched::Watcher;
use crate::world::{World, eventually};

/// How long a span may take.
const PATIENCE: Duration = Duration::from_secs(20);

const ID: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What the agent tells those that subscribe at its own socket.
struct Subscriber(AgentClient);

impl Subscriber {
    fn start(world: &World) -> Self {
        let mut client = AgentClient::connect(world.node.agent().socket()).unwrap();
        client.subscribe().unwrap();
        Self(client)
    }

    fn hear(&mut self, kind: EventKind) -> Event {
        loop {
            if let Reply::Event(event) = self.0.receive().unwrap()
                && event.event == kind
            {
                return event;
            }
        }
    }
}

/// Waits for a line about an attachment that names this trace.
fn assert_logged(world: &World, line: &str, id: &str) {
    let is_it = |logged: &str| logged.contains(line) && logged.contains(&format!("trace=\"{id}\""));
    let log = || world.node.agent().log_tail();
    eventually(&format!("`{line}` is logged with {id}: {}", log()), || log().lines().any(is_it));
}

#[test]
fn a_call_by_grpc_is_one_trace_from_its_metadata_to_the_watchers() {
    let mut world = World::start();
    let asked = world.container("one");
    let (mut watcher, mut subscriber) = (Watcher::start(&world, ""), Subscriber::start(&world));
    let mut client = world.client();
    let mut request = Request::new(asked.add());
    request.metadata_mut().insert("traceparent", PARENT.parse().unwrap());
    client.runtime.block_on(client.stub.add(request)).unwrap();
    let attached = watcher.hear(v1::EventKind::Attached);
    assert_eq!((attached.trace_id.as_str(), attached.attachment.unwrap().container_id.as_str()), (ID, "one"));
    assert_eq!(subscriber.hear(EventKind::Attach).trace_id.as_deref(), Some(ID));
    assert_logged(&world, "attach key=pods/one/eth0", ID);

    // The next call is of no trace.
    client.delete(&asked).unwrap();
    assert_eq!(watcher.hear(v1::EventKind::Detached).trace_id, "");
    assert_eq!(subscriber.hear(EventKind::Detach).trace_id, None);
    world.assert_empty();
}

#[test]
fn a_plugin_that_a_runtime_runs_passes_its_trace_on_by_itself_and_by_the_service() {
    let mut world = World::start();
    world.container("one");
    let mut subscriber = Subscriber::start(&world);
    for (is_handed_over, parent, id) in [
        (false, PARENT, Some(ID)),
        (true, PARENT, Some(ID)),
        (false, "", None),
        (false, "00-\n-01", None),
        (true, "00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
    ] {
        let plugins = world.node.plugins().display().to_string();
        world.write_plugin("shunt", &format!("export TRACEPARENT='{parent}'\nexec {plugins}/shunt"));
        let mut plugin = world.shunt();
        plugin["agentSocket"] = json!(world.node.agent().socket());
        if is_handed_over {
            plugin["viaAgent"] = json!(world.socket());
        }
        let network = Network::new("pods", &world.lab.root().join("foreign"), plugin);
        let (node, container) = (world.node.namespace(), &world.containers[0]);
        let added = network.add(node, container).unwrap();
        assert_eq!(subscriber.hear(EventKind::Attach).trace_id.as_deref(), id, "{parent:?} {is_handed_over}");
        network.del(node, container, &added.result).unwrap();
        assert_eq!(subscriber.hear(EventKind::Detach).trace_id.as_deref(), id, "{parent:?} {is_handed_over}");
    }
    assert_logged(&world, "detach key=pods/one/eth0", ID);
    world.assert_empty();
}

/// A collector (OTLP over gRPC) on a node's loopback; keeps what it is told. It ends when it is dropped.
struct Collector {
    told: Receiver<Span>,
    _over: oneshot::Sender<()>,
}

struct Receiving(Mutex<Sender<Span>>);

#[async_trait]
impl TraceService for Receiving {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        for span in resources.flat_map(|it| it.scope_spans).flat_map(|it| it.spans) {
            self.0.lock().unwrap().send(span).unwrap();
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    fn start(namespace: &Namespace) -> Self {
        let listener = namespace.enter(|| std::net::TcpListener::bind("127.0.0.1:4317").unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (sender, told) = channel();
        let (over, ends) = oneshot::channel::<()>();
        let receive = async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let service = TraceServiceServer::new(Receiving(Mutex::new(sender)));
            let router = Server::builder().add_service(service);
            let ends = async { _ = ends.await };
            router.serve_with_incoming_shutdown(TcpListenerStream::new(listener), ends).await
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        thread::spawn(move || runtime.block_on(receive).unwrap());
        Self { told, _over: over }
    }

    fn hear(&self) -> Span {
        self.told.recv_timeout(PATIENCE).unwrap()
    }
}

#[test]
fn a_collector_is_told_of_each_call_as_part_of_its_callers_span() {
    let environment = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 OTEL_BSP_SCHEDULE_DELAY=50";
    let mut world = World::start_in("", environment);
    let asked = world.container("one");
    let collector = Collector::start(world.node.namespace());
    let mut client = world.client();
    // Neither a call of no trace nor one whose caller does not record it.
    client.add(&asked).unwrap();
    let of = |parent: &str| {
        let mut request = Request::new(asked.delete());
        request.metadata_mut().insert("traceparent", parent.parse().unwrap());
        request
    };
    client.runtime.block_on(client.stub.delete(of(&PARENT.replace("-01", "-00")))).unwrap();
    client.runtime.block_on(client.stub.delete(of(PARENT))).unwrap();
    let spans = [collector.hear(), collector.hear()];
    for span in &spans {
        let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            (hex(&span.trace_id), hex(&span.parent_span_id).as_str()),
            (ID.to_owned(), "b7ad6b7169203331")
        );
        assert!(span.end_time_unix_nano > span.start_time_unix_nano, "{span:?}");
    }
    let is_failed =
        |span: &Span| span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
    assert_eq!(spans.each_ref().map(|span| span.name.as_str()), ["detach", "DEL"]);
    assert!(!spans.iter().any(is_failed), "{spans:?}");

    // Calls that no plugin does.
    for (mtu, has_failed) in [(1400, false), (1300, true)] {
        let mut plugin = world.shunt();
        plugin["mtu"] = json!(mtu);
        let config_list = world.list(&[plugin]).to_string().into_bytes();
        let mut request = Request::new(v1::RegisterNetworkRequest { config_list });
        request.metadata_mut().insert("traceparent", PARENT.parse().unwrap());
        let registered = client.runtime.block_on(client.stub.register_network(request));
        let span = collector.hear();
        assert_eq!((span.name.as_str(), is_failed(&span)), ("RegisterNetwork", has_failed), "{registered:?}");
    }
    assert_logged(&world, "is registered with another configuration", ID);
    let unregister = v1::UnregisterNetworkRequest { name: "pods".to_owned() };
    client.runtime.block_on(client.stub.unregister_network(unregister)).unwrap();

    let mut agent = AgentClient::connect(world.node.agent().socket()).unwrap();
    agent.trace(Some(PARENT.parse().unwrap()));
    let key = AttachmentKey { network: "pods".into(), container: "nobody".into(), ifname: "eth0".into() };
    agent.ask(AgentRequest::Limit { key, bandwidth: Bandwidth::default() }).unwrap_err();
    let refused = collector.hear();
    assert!(refused.name == "limit" && is_failed(&refused), "{refused:?}");
    assert_logged(&world, "a request was refused", ID);
    drop(collector);
    // Nobody waits for a collector that is away.
    client.runtime.block_on(client.stub.delete(of(PARENT))).unwrap();
    world.assert_empty();
    let begun = Instant::now();
    world.node.agent_mut().terminate().unwrap();
    assert!(begun.elapsed() < patience(Duration::from_secs(3)), "{:?}", begun.elapsed());
}
