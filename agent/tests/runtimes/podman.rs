//! podman 4.3 with its CNI backend. It asks for VERSION with a namespace called `dummy`, and passes port mappings and the
//! container's name.

use std::net::{IpAddr, SocketAddr};

use shunt_lab::{Conversation, Protocol};

use crate::rootfs::{self, CLIENT, SAME, SERVER};
use crate::site::{GATEWAY, NETWORK, Site};

/// No pids controller is needed: a cgroup2 beside cgroup v1 has none. Limits may not be raised where
/// `CAP_SYS_RESOURCE` is missing.
const SETTINGS: &str = r#"
[containers]
pids_limit = 0
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
"#;

const CNI: &str = r#"
[network]
network_backend = "cni"
cni_plugin_dirs = ["/opt/cni/bin", "/usr/lib/cni"]
"#;

/// The port of the node that leads to a server.
const HOST_PORT: u16 = 8080;

pub(crate) struct Podman {
    pub(crate) site: Site,
    root: String,
}

impl Podman {
    /// With these settings of its networks. None, having said so, where it is not installed.
    pub(crate) fn prepare(networks: &str) -> Option<Self> {
        if rootfs::lacks(&[("podman", "podman"), ("runc", "runc")]) {
            return None;
        }
        let site = Site::prepare();
        site.host.write("/etc/containers/containers.conf", &format!("{SETTINGS}{networks}"));
        let root = site.lab.directory("rootfs").unwrap();
        rootfs::make(&root);
        Some(Self { site, root: root.to_str().unwrap().to_owned() })
    }

    /// `podman run`, with `options` before and `script` after the root directory; what it printed last.
    pub(crate) fn run(&self, name: &str, options: &[&str], script: &[&str]) -> String {
        // An overlay of its own for each container, so that they may share the root directory.
        let root = format!("{}:O", self.root);
        let mut words = vec!["podman", "--storage-driver", "vfs", "--log-level", "error", "run"];
        words.extend(["--name", name, "--network", NETWORK]);
        words.extend(options);
        words.extend(["--rootfs", &root, "/bin/sh", "-c"]);
        words.extend(script);
        self.site.host.run(&words).trim().to_owned()
    }

    /// A server in the background; its id.
    pub(crate) fn serve(&self, name: &str, options: &[&str]) -> String {
        let options = [&["--detach"], options].concat();
        self.run(name, &options, &[SERVER])
    }

    /// Has a container talk to a server.
    pub(crate) fn talk(&self, client: &str, address: &str) {
        let exec = ["podman", "--storage-driver", "vfs", "exec", client];
        let said = self.site.host.run(&[&exec[..], &["/bin/sh", "-c", CLIENT, "sh", address]].concat());
        assert!(said.contains(SAME), "{said}");
    }

    pub(crate) fn remove(&self, name: &str) {
        self.site.host.run(&["podman", "--storage-driver", "vfs", "rm", "--force", "--time", "0", name]);
    }
}

#[test]
fn podmans_containers_talk_over_the_fast_path_and_leave_nothing() {
    let Some(podman) = Podman::prepare(CNI) else { return };
    let site = &podman.site;
    podman.run("first", &["--rm", "--publish", "8081:7000"], &["ip address show eth0"]);
    let before = site.inventory();

    let publish = format!("{HOST_PORT}:7000");
    let server = podman.serve("server", &["--publish", &publish]);
    assert_eq!(site.port(&server).network, NETWORK);
    // Two servers, so that one of them can be the client and still be there to be counted.
    let client = podman.serve("client", &[]);
    let address = site.address(&server);
    podman.talk("client", &address);
    for id in [&server, &client] {
        site.assert_fast(id);
    }

    let gateway: IpAddr = GATEWAY.parse().unwrap();
    let published = SocketAddr::new(gateway, HOST_PORT);
    let talk = Conversation::open(site.node.namespace(), Protocol::Tcp, published);
    talk.unwrap().chat(20, 1000).unwrap();

    podman.remove("server");
    podman.remove("client");
    site.assert_clean(&before);
    podman.site.leave();
}
