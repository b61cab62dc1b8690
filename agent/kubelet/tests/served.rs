//! A driver served over real sockets to a kubelet of the tests' own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "served/fake_kubelet.rs"]
mod fake_kubelet;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shunt_kubelet::{ClaimName, Device, DeviceHealth, Driver, serve};
use tokio::sync::{oneshot, watch};

use fake_kubelet::{FakeKubelet, Version};

const NAME: &str = "wire.example.com";

/// A driver that prepares every claim but those that are called `bad`.
struct Wires {
    health: watch::Sender<Vec<DeviceHealth>>,
    outcomes: Mutex<Vec<Result<(), String>>>,
}

impl Driver for Wires {
    async fn prepare(&self, claim: ClaimName) -> Result<Vec<Device>, String> {
        if claim.name == "bad" {
            return Err("it is bad".to_owned());
        }
        Ok(vec![Device { request: claim.name, pool: "node-1".to_owned(), device: "eth1".to_owned() }])
    }

    async fn unprepare(&self, _: ClaimName) -> Result<(), String> {
        Ok(())
    }

    fn health(&self) -> watch::Receiver<Vec<DeviceHealth>> {
        self.health.subscribe()
    }

    fn registered(&self, outcome: Result<(), String>) {
        self.outcomes.lock().unwrap().push(outcome);
    }
}

fn state(fault: Option<&str>) -> Vec<DeviceHealth> {
    vec![DeviceHealth {
        pool: "node-1".to_owned(),
        device: "eth1".to_owned(),
        fault: fault.map(str::to_owned),
    }]
}

/// A driver that is served until this is dropped.
struct Served {
    driver: Arc<Wires>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Served {
    fn start(root: &Path) -> Self {
        let driver = Arc::new(Wires { health: watch::Sender::new(state(None)), outcomes: Mutex::default() });
        let (stop, stopped) = oneshot::channel();
        let (root, served) = (root.to_path_buf(), Arc::clone(&driver));
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    ended = serve(&root, NAME, served) => panic!("{ended:?}"),
                    _ = stopped => {}
                }
            });
        };
        Self { driver, running: Some((stop, std::thread::spawn(run))) }
    }

    fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            // It ends by itself where its thread has panicked.
            let _gone = stop.send(());
            thread.join().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some((stop, _)) = self.running.take() {
            let _gone = stop.send(());
        }
    }
}

#[test]
fn a_kubelet_registers_a_driver_by_the_authority_that_its_calls_have() {
    let root = tempfile::tempdir().unwrap();
    let mut kubelet = FakeKubelet::new(root.path());
    let served = Served::start(root.path());
    let info = kubelet.register();
    assert_eq!((info.r#type.as_str(), info.name.as_str()), ("DRAPlugin", NAME));
    assert_eq!(
        info.supported_versions,
        ["v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"]
    );
    assert_eq!(Path::new(&info.endpoint), root.path().join("plugins").join(NAME).join("dra@k.sock"));
    let socket = kubelet.registry().remove(0);
    kubelet.notify(&socket, false, "another driver has the name");
    let outcomes = served.driver.outcomes.lock().unwrap().clone();
    assert_eq!(outcomes, [Ok(()), Err("another driver has the name".to_owned())]);
}

#[test]
fn a_claim_that_fails_has_an_error_of_its_own_and_the_others_are_prepared() {
    let root = tempfile::tempdir().unwrap();
    let mut kubelet = FakeKubelet::new(root.path());
    let _served = Served::start(root.path());
    kubelet.register();
    let prepared = kubelet.prepare(&[("team", "one", "1"), ("team", "bad", "2"), ("team", "three", "3")]);
    assert_eq!(prepared["2"], Err("it is bad".to_owned()));
    for (uid, request) in [("1", "one"), ("3", "three")] {
        let devices = prepared[uid].as_ref().unwrap();
        assert_eq!(
            (devices.len(), devices[0].request_names.as_slice()),
            (1, [request.to_owned()].as_slice())
        );
        assert_eq!((devices[0].pool_name.as_str(), devices[0].device_name.as_str()), ("node-1", "eth1"));
    }
    assert_eq!(kubelet.unprepare(&[("team", "one", "1")])["1"], "");
}

#[test]
fn a_call_with_more_claims_or_bytes_than_any_pods_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut kubelet = FakeKubelet::new(root.path());
    let _served = Served::start(root.path());
    kubelet.register();
    let uids: Vec<_> = (0..257).map(|number| number.to_string()).collect();
    let names: Vec<_> = uids.iter().map(|uid| ("team", "one", uid.as_str())).collect();
    let refused = kubelet.try_prepare(&names).unwrap_err();
    assert!(refused.message().contains("257 claims in one call"), "{refused}");
    let long = "x".repeat(300 << 10);
    let refused = kubelet.try_prepare(&[("team", &long, "1")]).unwrap_err();
    assert_eq!(refused.code(), tonic::Code::OutOfRange, "{refused}");
    assert!(kubelet.prepare(&[("team", "one", "1")])["1"].is_ok());
}

#[test]
fn health_is_told_in_both_versions_at_once_and_when_it_changes() {
    let root = tempfile::tempdir().unwrap();
    let mut kubelet = FakeKubelet::new(root.path());
    let served = Served::start(root.path());
    kubelet.register();
    for version in [Version::V1, Version::V1Alpha1] {
        let mut health = kubelet.watch(version);
        assert_eq!(health.next(), [("eth1".to_owned(), true, String::new())], "{version:?}");
        served.driver.health.send_replace(state(Some("no carrier")));
        assert_eq!(health.next(), [("eth1".to_owned(), false, "no carrier".to_owned())], "{version:?}");
        served.driver.health.send_replace(state(None));
        assert!(health.next()[0].1, "{version:?}");
    }
}

#[test]
fn sockets_are_roots_alone_and_go_at_the_end_and_those_of_the_dead_go_at_the_start() {
    let root = tempfile::tempdir().unwrap();
    let mut kubelet = FakeKubelet::new(root.path());
    let registry = root.path().join("plugins_registry");
    let [dead, living, foreign] = ["1-2", "3-4", ""].map(|which| {
        let name =
            if which.is_empty() { "other-reg@k.sock".into() } else { format!("{NAME}-{which}-reg@k.sock") };
        registry.join(name)
    });
    drop([&dead, &foreign].map(|path| UnixListener::bind(path).unwrap()));
    let still_there = UnixListener::bind(&living).unwrap();
    let mut served = Served::start(root.path());
    wait(|| kubelet.registry().len() == 3 && !dead.exists());
    drop(still_there);
    fs::remove_file(&living).unwrap();
    fs::remove_file(&foreign).unwrap();
    kubelet.register();
    for socket in [kubelet.registry().remove(0), kubelet.endpoint().to_path_buf()] {
        let mode = fs::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", socket.display());
    }
    served.stop();
    assert_eq!(fs::read_dir(&registry).unwrap().count(), 0);
    assert!(!kubelet.endpoint().exists());
}

#[test]
fn a_socket_whose_file_is_gone_is_made_again() {
    let root = tempfile::tempdir().unwrap();
    let mut kubelet = FakeKubelet::new(root.path());
    let _served = Served::start(root.path());
    kubelet.register();
    fs::remove_file(kubelet.registry().remove(0)).unwrap();
    fs::remove_file(kubelet.endpoint()).unwrap();
    kubelet.register();
    assert!(kubelet.prepare(&[("team", "one", "1")])["1"].is_ok());
}

fn wait(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never came true");
        std::thread::sleep(Duration::from_millis(10));
    }
}
