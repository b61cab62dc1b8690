//! A node of a cluster: an agent, an API server and a kubelet.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use shunt_agent_api::{Bandwidth, BridgePort, Pod};

use crate::api_claims::{claim, path};
use crate::api_server::ApiServer;
use crate::api_store::NODE;
use crate::fake_kubelet::FakeKubelet;
use crate::rig::{Rig, eventually};

/// The uplinks of the node: `net` goes by the first one, `other` by the second.
const UPLINKS: &str = "[uplinks.eth1]\negress = '1G'\ningress = '1G'\n[uplinks.eth2]\negress = '1G'\n\
                       ingress = '1G'\nnetworks = ['other']\n";

pub(crate) struct Cluster {
    pub(crate) rig: Rig,
    pub(crate) server: ApiServer,
    pub(crate) kubelet: FakeKubelet,
}

impl Cluster {
    /// A node whose kubelet has registered the driver.
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// The same with more options before the uplinks.
    pub(crate) fn start_with(options: &str) -> Self {
        Self::start_of(options, "")
    }

    /// The same with more options of the first uplink, whose other end is outside and leads back to the containers.
    pub(crate) fn start_of(options: &str, of_first: &str) -> Self {
        let mut rig = Rig::bare();
        for (uplink, peer) in [("eth1", "peer1"), ("eth2", "peer2")] {
            rig.ip(&["link", "add", uplink, "type", "veth", "peer", "name", peer]);
            rig.ip(&["link", "set", uplink, "up"]);
            rig.ip(&["link", "set", peer, "up"]);
        }
        let server = ApiServer::start(&rig);
        let kubelet = FakeKubelet::new(&kubelet_root(&rig));
        let [config, kubeconfig] = ["config.toml", "kubeconfig"].map(|name| rig.lab.root().join(name));
        fs::write(&kubeconfig, ApiServer::kubeconfig().to_string()).unwrap();
        let uplinks = UPLINKS.replacen("[uplinks.eth1]", &format!("[uplinks.eth1]\n{of_first}"), 1);
        let text = format!(
            "{options}\n{uplinks}[kubernetes]\nkubeconfig = '{}'\nnode = '{NODE}'\nkubelet_root = '{}'\n",
            kubeconfig.display(),
            kubelet_root(&rig).display()
        );
        fs::write(config, text).unwrap();
        run(&mut rig);
        let mut cluster = Self { rig, server, kubelet };
        cluster.kubelet.register();
        cluster
    }

    /// Ends the agent with SIGKILL, and starts the next one, which the kubelet finds.
    pub(crate) fn restart(&mut self) {
        self.rig.kill();
        run(&mut self.rig);
        self.kubelet.register();
    }

    /// Has the API server keep a claim of `eth1`, and the kubelet ask for it.
    pub(crate) fn prepared(&self, name: &str, pod: &str, rates: [&str; 2]) {
        self.keep(name, "eth1", &[pod], rates);
        self.prepare(name).unwrap();
    }

    /// Has the API server keep a claim.
    pub(crate) fn keep(&self, name: &str, device: &str, pods: &[&str], rates: [&str; 2]) {
        self.server.store().keep_claim(path(name), claim(name, device, pods, rates));
    }

    /// Has a claim prepared: its devices' names.
    pub(crate) fn prepare(&self, name: &str) -> Result<Vec<String>, String> {
        let uid = format!("uid-{name}");
        let mut prepared = self.kubelet.prepare(&[("team", name, &uid)]);
        let devices = prepared.remove(&uid).unwrap()?;
        Ok(devices.into_iter().map(|device| device.device_name).collect())
    }

    /// Has a claim unprepared: the error, empty where there is none.
    pub(crate) fn unprepare(&self, name: &str) -> String {
        let uid = format!("uid-{name}");
        self.kubelet.unprepare(&[("team", name, &uid)]).remove(&uid).unwrap()
    }

    /// Files of prepared claims.
    pub(crate) fn claim_files(&self) -> Vec<String> {
        let directory = self.rig.state().join("claims");
        if directory.exists() { self.rig.files(directory) } else { Vec::new() }
    }

    /// A container of a pod, to be attached.
    pub(crate) fn container(&mut self, number: u8, pod: &str) -> BridgePort {
        let port = self.rig.container(number);
        let netns = self.rig.containers.last().unwrap().path().to_str().unwrap().to_owned();
        BridgePort { netns: Some(netns), pod: Some(self::pod(pod)), ..port }
    }

    /// The limits of a container that is attached, egress and ingress, in megabits a second.
    pub(crate) fn limits(&self, port: &BridgePort) -> [Option<u64>; 2] {
        let ports = self.rig.ports();
        let found = ports.iter().find(|found| found.container == port.key.container).unwrap();
        [found.limits.egress, found.limits.ingress].map(|rate| rate.map(|rate| rate / 1_000_000))
    }

    /// Waits until the status says this.
    pub(crate) fn until_warned(&self, said: &str) {
        eventually(said, || self.rig.status().warnings.iter().any(|warning| warning.contains(said)));
    }
}

/// A pod as a runtime names it.
pub(crate) fn pod(name: &str) -> Pod {
    Pod { namespace: "team".into(), name: name.into(), uid: format!("pod-{name}"), ..Pod::default() }
}

/// Limits as an annotation asks for them, in megabits a second.
pub(crate) fn annotated(egress: u64, ingress: u64) -> Bandwidth {
    let rate = |rate| Some(shunt_agent_api::Rate { rate: rate * 1_000_000, burst: u64::from(u32::MAX) });
    Bandwidth { egress: rate(egress), ingress: rate(ingress), ..Bandwidth::default() }
}

pub(crate) fn kubelet_root(rig: &Rig) -> PathBuf {
    rig.lab.root().join("kubelet")
}

fn run(rig: &mut Rig) {
    let config = rig.lab.root().join("config.toml");
    rig.run_with("auto", &["--config", config.to_str().unwrap()]);
}

/// The time of one call, for figures.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = std::time::Instant::now();
    let done = work();
    (done, begun.elapsed())
}
