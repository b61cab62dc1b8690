//! A kubelet as far as a driver can tell: it finds the socket in its registry, asks who is there, and calls with the `:authority` that
//! a kubelet's calls have, which is the socket's path with its slashes escaped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use shunt_kubelet::proto::dra::dra_plugin_client::DraPluginClient;
use shunt_kubelet::proto::dra::{Claim, Device, NodePrepareResourcesRequest, NodeUnprepareResourcesRequest};
use shunt_kubelet::proto::registration::registration_client::RegistrationClient;
use shunt_kubelet::proto::registration::{InfoRequest, PluginInfo, RegistrationStatus};
use shunt_kubelet::proto::v1::dra_resource_health_client::DraResourceHealthClient;
use shunt_kubelet::proto::v1::{NodeWatchResourcesRequest, NodeWatchResourcesResponse};
use shunt_kubelet::proto::v1alpha1::dra_resource_health_client::DraResourceHealthClient as OlderClient;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::{Status, Streaming};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A claim's namespace, name and UID.
pub(crate) type Name<'a> = (&'a str, &'a str, &'a str);

/// What a health stream is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V1Alpha1,
}

pub(crate) struct FakeKubelet {
    runtime: Runtime,
    root: PathBuf,
    endpoint: Option<PathBuf>,
}

/// A health stream.
pub(crate) struct Health<'a>(&'a Runtime, Streaming<NodeWatchResourcesResponse>);

impl FakeKubelet {
    /// A kubelet with an empty registry below `root`.
    pub(crate) fn new(root: &Path) -> Self {
        for directory in ["plugins", "plugins_registry"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, root: root.to_path_buf(), endpoint: None }
    }

    /// What a kubelet sees in its registry: sockets whose names do not begin with a dot.
    pub(crate) fn registry(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join("plugins_registry")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
    }

    /// Registers the only driver, once it is there.
    pub(crate) fn register(&mut self) -> PluginInfo {
        let begun = Instant::now();
        while self.registry().len() != 1 {
            assert!(begun.elapsed() < PATIENCE, "one driver was expected in {:?}", self.registry());
            std::thread::sleep(Duration::from_millis(10));
        }
        let socket = self.registry().remove(0);
        let info = self.notify(&socket, true, "");
        self.endpoint = Some(info.endpoint.clone().into());
        info
    }

    /// Asks who is there, and says what has become of it.
    pub(crate) fn notify(&self, socket: &Path, plugin_registered: bool, error: &str) -> PluginInfo {
        let error = error.to_owned();
        self.runtime.block_on(async {
            let (channel, origin) = connect(socket).await;
            let mut client = RegistrationClient::with_origin(channel, origin);
            let info = client.get_info(InfoRequest {}).await.unwrap().into_inner();
            client.notify_registration_status(RegistrationStatus { plugin_registered, error }).await.unwrap();
            info
        })
    }

    /// The driver's socket.
    pub(crate) fn endpoint(&self) -> &Path {
        self.endpoint.as_deref().unwrap()
    }

    /// Has claims prepared in one call: the outcomes by UID.
    pub(crate) fn prepare(&self, names: &[Name<'_>]) -> BTreeMap<String, Result<Vec<Device>, String>> {
        self.try_prepare(names).unwrap()
    }

    /// The same, where the call may fail as a whole.
    pub(crate) fn try_prepare(
        &self,
        names: &[Name<'_>],
    ) -> Result<BTreeMap<String, Result<Vec<Device>, String>>, Status> {
        let claims = claims(names);
        let answer = self.runtime.block_on(async {
            let (channel, origin) = connect(self.endpoint()).await;
            DraPluginClient::with_origin(channel, origin)
                .node_prepare_resources(NodePrepareResourcesRequest { claims })
                .await
        })?;
        let outcome = |error: String, devices| if error.is_empty() { Ok(devices) } else { Err(error) };
        let claims = answer.into_inner().claims.into_iter();
        Ok(claims.map(|(uid, claim)| (uid, outcome(claim.error, claim.devices))).collect())
    }

    /// Has claims unprepared in one call: the errors by UID, empty ones where there is none.
    pub(crate) fn unprepare(&self, names: &[Name<'_>]) -> BTreeMap<String, String> {
        let claims = claims(names);
        let answer = self.runtime.block_on(async {
            let (channel, origin) = connect(self.endpoint()).await;
            let mut client = DraPluginClient::with_origin(channel, origin);
            client.node_unprepare_resources(NodeUnprepareResourcesRequest { claims }).await.unwrap()
        });
        answer.into_inner().claims.into_iter().map(|(uid, claim)| (uid, claim.error)).collect()
    }

    /// Has the devices' health told.
    pub(crate) fn watch(&self, version: Version) -> Health<'_> {
        let stream = self.runtime.block_on(async {
            let (channel, origin) = connect(self.endpoint()).await;
            let request = NodeWatchResourcesRequest {};
            let answer = match version {
                Version::V1 => {
                    DraResourceHealthClient::with_origin(channel, origin).node_watch_resources(request).await
                }
                Version::V1Alpha1 => {
                    OlderClient::with_origin(channel, origin).node_watch_resources(request).await
                }
            };
            answer.unwrap().into_inner()
        });
        Health(&self.runtime, stream)
    }
}

impl Health<'_> {
    /// The next word on all devices: name, whether it is healthy, message.
    pub(crate) fn next(&mut self) -> Vec<(String, bool, String)> {
        let told = self.0.block_on(async { timeout(PATIENCE, self.1.message()).await });
        let devices = told.unwrap().unwrap().unwrap().devices.into_iter();
        let device = |device: shunt_kubelet::proto::v1::DeviceHealth| {
            (device.device.unwrap().device_name, device.health == 1, device.message)
        };
        devices.map(device).collect()
    }
}

fn claims(names: &[Name<'_>]) -> Vec<Claim> {
    let claim = |(namespace, name, uid): &Name<'_>| Claim {
        namespace: (*namespace).to_owned(),
        name: (*name).to_owned(),
        uid: (*uid).to_owned(),
    };
    names.iter().map(claim).collect()
}

/// A connection, and the origin of its calls.
async fn connect(socket: &Path) -> (Channel, Uri) {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let authority = socket.to_str().unwrap().replace('/', "%2F");
    (Channel(sender), format!("http://{authority}").parse().unwrap())
}

#[derive(Clone)]
struct Channel(SendRequest<Body>);

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
