//! shunt's image on a node that has nothing of it, run as the manifests say: the plugin and the BPF file system are put there, the agent
//! becomes ready with the DaemonSet's capabilities and serves a container, and the other manifest takes it all off again.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_deploy::{Image, Made, Origin};
use shunt_lab::{Binaries, Lab, Machine, Namespace, patience};

use crate::host::Host;
use crate::pod::Pod;
use crate::rootfs;

/// How long an agent that is started may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// podman on a host whose files are all empty, as the other tests set it.
const SETTINGS: &str = r#"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
"#;

/// A container's namespace, and a network with what wants most of the agent: its programs on the node's sockets, nf_tables, and a limit on
/// what the container sends, which is set in the container's namespace.
const CONTAINER: &str = "/run/netns/pod";
const HOST_PORT: u16 = 8080;

fn network() -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "shunt", "bridge": "cni0", "isDefaultGateway": true, "ipMasq": true,
        "ipam": { "type": "shunt-ipam", "ranges": [[{ "subnet": "10.88.0.0/24" }]] },
        "runtimeConfig": {
            "portMappings": [{ "hostPort": HOST_PORT, "containerPort": 80, "protocol": "tcp" }],
            "bandwidth": { "ingressRate": 8_000_000, "ingressBurst": 800_000, "egressRate": 8_000_000, "egressBurst": 800_000 },
        },
    })
}

/// A node without anything of shunt's but the image in podman's store. Fields are dropped in their order.
struct Site {
    host: Host,
    _network: Namespace,
    made: Made,
    lab: Lab,
    machine: Machine,
}

impl Site {
    /// None, having said so, where podman is not installed.
    fn prepare() -> Option<Self> {
        if rootfs::lacks(&[("podman", "podman"), ("runc", "runc")]) {
            return None;
        }
        let machine = Machine::now();
        let lab = Lab::new().unwrap();
        let network = lab.namespace("node").unwrap();
        let host = Host::bare(&lab, &network);
        host.write("/etc/containers/containers.conf", SETTINGS);
        // As systemd leaves mounts. The node's BPF file system is this host's alone, and there is none yet.
        host.run(&["mount", "--make-rshared", "/"]);
        host.run(&["sh", "-c", "while mountpoint --quiet /sys/fs/bpf; do umount --lazy /sys/fs/bpf; done"]);
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let programs = lab.directory("programs").unwrap();
        Binaries::find().unwrap().copy_to(&programs).unwrap();
        let image = Image { programs: &programs, checkout, origin: Origin::of(checkout).unwrap() };
        let made = image.make(&lab.root().join("image")).unwrap();
        host.run(&[
            "podman",
            "--storage-driver",
            "vfs",
            "load",
            "--quiet",
            "--input",
            made.archive.to_str().unwrap(),
        ]);
        Some(Self { host, _network: network, made, lab, machine })
    }

    fn pod(&self, manifest: &str) -> Pod<'_> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes").join(manifest);
        Pod::of(&self.host, &fs::read_to_string(path).unwrap())
    }

    fn is_on_the_host(&self, path: &str) -> bool {
        self.host.command(&["test", "-e", path]).status().unwrap().success()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        self.host.run(&["ls", directory]).lines().map(str::to_owned).collect()
    }

    /// Calls the plugin that is installed, as a runtime would.
    fn call(&self, network: &Value, verb: &str) -> String {
        let script = "printf %s \"$1\" | CNI_COMMAND=$2 CNI_CONTAINERID=one CNI_NETNS=$3 CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin \
                      /opt/cni/bin/shunt";
        self.host.run(&["sh", "-c", script, "sh", &network.to_string(), verb, CONTAINER])
    }

    /// Nothing is left on the machine.
    fn leave(self) {
        let Self { host, _network, made: _, lab, machine } = self;
        let root = lab.root().to_owned();
        drop(host);
        drop(_network);
        drop(lab);
        assert_eq!(machine.leaks(&root), Vec::<String>::new());
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[test]
fn podman_loads_the_image_under_its_name_and_the_agent_in_it_runs() {
    let Some(site) = Site::prepare() else { return };
    let image = site.made.reference.as_str();
    let run = ["podman", "--storage-driver", "vfs", "run", "--rm", "--pull", "never", "--network", "none"];
    let version = site.host.run(&[&run[..], &["--pids-limit", "0", image, "--version"]].concat());
    assert_eq!(version.trim(), format!("shunt-agent {}", env!("CARGO_PKG_VERSION")));
    let inspect = [
        "podman",
        "--storage-driver",
        "vfs",
        "image",
        "inspect",
        "--format",
        "{{.Digest}} {{.Architecture}}",
    ];
    let inspected = site.host.run(&[&inspect[..], &[image]].concat());
    assert_eq!(inspected.trim(), format!("{} {}", site.made.digest, site.made.architecture));
    site.leave();
}

#[test]
fn the_daemon_set_makes_a_node_ready_and_the_other_manifest_leaves_nothing() {
    let Some(site) = Site::prepare() else { return };
    let pod = site.pod("shunt.yaml");
    prepare_node(&site, &pod);
    serve(&site, &pod);
    // The pod of the new manifest starts when the agent's has ended.
    let uninstalling = site.pod("uninstall.yaml");
    let output = uninstalling.initialize("uninstall");
    assert!(output.status.success(), "{}", said(&output));
    uninstalling.start("done");
    assert_eq!(uninstalling.stop("done"), "0");
    assert_eq!(site.names("/opt/cni/bin"), Vec::<String>::new());
    for path in ["/var/lib/shunt", "/run/shunt", "/sys/fs/bpf/shunt"] {
        assert!(!site.is_on_the_host(path), "{path} is left: {:?}", site.host.run(&["find", path, "-ls"]));
    }
    site.leave();
}

/// The init containers.
fn prepare_node(site: &Site, pod: &Pod<'_>) {
    let kind = || site.host.run(&["stat", "--file-system", "--format", "%T", "/sys/fs/bpf"]);
    assert_ne!(kind().trim(), "bpf_fs");
    for _ in 0..2 {
        let output = pod.initialize("mount-bpffs");
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(kind().trim(), "bpf_fs");
    }
    let mounts = site.host.run(&["grep", "-c", " /sys/fs/bpf ", "/proc/self/mountinfo"]);
    assert_eq!(mounts.trim(), "1", "it is mounted where there is none, and not twice");

    // A `loopback` that the node has stays; one that it lacks is shunt's.
    let loopback = || site.host.run(&["readlink", "--canonicalize", "/opt/cni/bin/loopback"]);
    site.host.run(&["mkdir", "--parents", "/opt/cni/bin"]);
    site.host.run(&["cp", "/usr/lib/cni/loopback", "/opt/cni/bin/loopback"]);
    for wanted in ["/opt/cni/bin/loopback", "/opt/cni/bin/shunt"] {
        let output = pod.initialize("install-plugin");
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(loopback().trim(), wanted);
        if wanted.ends_with("loopback") {
            site.host.run(&["rm", "/opt/cni/bin/loopback"]);
        }
    }
    let installed = site.names("/opt/cni/bin");
    assert_eq!(
        installed,
        ["loopback", "shunt", "shunt-bandwidth", "shunt-bridge", "shunt-ipam", "shunt-portmap", "shunt-vlan"]
    );
}

/// The agent, by its probes, and a container that it serves.
fn serve(site: &Site, pod: &Pod<'_>) {
    pod.start("agent");
    let begun = Instant::now();
    let mut ready = pod.probe("agent", "readinessProbe");
    while !ready.status.success() {
        let log =
            site.host.command(&["podman", "--storage-driver", "vfs", "logs", "agent"]).output().unwrap();
        assert!(begun.elapsed() < patience(PATIENCE), "{}\n{}", said(&ready), said(&log));
        std::thread::sleep(Duration::from_millis(100));
        ready = pod.probe("agent", "readinessProbe");
    }
    assert!(pod.probe("agent", "livenessProbe").status.success());

    site.host.run(&["ip", "netns", "add", "pod"]);
    // By the agent's service, which needs more of the node than the agent does: settings of the kernel, and leases.
    let plain = network();
    let mut by_service = plain.clone();
    by_service["viaAgent"] = json!(true);
    site.host.run(&["sysctl", "-w", "net.ipv4.ip_forward=0"]);
    let served: Value = serde_json::from_str(&site.call(&by_service, "ADD")).unwrap();
    site.call(&by_service, "DEL");
    assert_eq!(site.host.run(&["sysctl", "-n", "net.ipv4.ip_forward"]).trim(), "1");
    let again: Value = serde_json::from_str(&site.call(&plain, "ADD")).unwrap();
    assert_eq!(again["routes"], served["routes"]);
    let ask = |verb: &str| -> Value {
        let ask = ["podman", "--storage-driver", "vfs", "exec", "agent", "shunt-agent", verb, "--json"];
        serde_json::from_str(&site.host.run(&ask)).unwrap()
    };
    let status = ask("status");
    assert_eq!((&status["healthy"], &status["attachments"]), (&json!(true), &json!(1)), "{status}");
    let programs = status["programs"].as_array().unwrap();
    let on_sockets = programs.iter().filter(|program| program["mode"] == "cgroup");
    assert!(on_sockets.clone().count() > 0, "{status}");
    assert!(on_sockets.clone().all(|program| program["ifname"] == "/host/cgroup"), "{status}");
    assert_eq!(status["grace_periods"]["expedited"], true, "{status}");
    assert_eq!(ask("mappings").as_array().unwrap().len(), 1);
    let inside = ["ip", "netns", "exec", "pod", "tc", "qdisc", "show", "dev", "eth0"];
    assert!(site.host.run(&inside).contains("tbf"), "the limit is set in the container's namespace");
    assert_eq!(ask("check")["consistent"], true);
    site.call(&by_service, "DEL");
    site.host.run(&["ip", "netns", "delete", "pod"]);
    site.host.run(&["ip", "link", "delete", "cni0"]);
    assert!(site.is_on_the_host("/run/shunt/cni.sock"));
    let [served, copied] = ["/run/shunt/cni.sock", "/run/copied.sock"];
    site.host.run(&["cp", "--archive", served, copied]);
    assert_eq!(pod.stop("agent"), "0");
    // As one that was killed leaves it.
    site.host.run(&["mv", copied, served]);
}
