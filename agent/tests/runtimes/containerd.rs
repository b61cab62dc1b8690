//! containerd 1.6 and its client's `ctr run --cni`: the namespace is named by a process, and DEL comes after it is gone,
//! with an empty `CNI_NETNS`.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_lab::Lab;

use crate::rootfs::{self, CLIENT, SAME, SERVER};
use crate::site::{NETWORK, Site};

/// Snapshotters and CRI have nothing to do here.
const SETTINGS: &str = r#"
version = 2
disabled_plugins = [
    "io.containerd.grpc.v1.cri",
    "io.containerd.internal.v1.opt",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
]
"#;

const PATIENCE: Duration = Duration::from_secs(10);

/// A process of ours on the host, which ends it in any case.
struct Background(Child);

impl Background {
    fn wait(mut self) {
        let begun = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

struct Containerd {
    _daemon: Background,
    site: Site,
}

impl Containerd {
    /// None, having said so, where it is not installed.
    fn prepare() -> Option<Self> {
        if rootfs::lacks(&[("containerd", "containerd"), ("containerd", "ctr"), ("runc", "runc")]) {
            return None;
        }
        let site = Site::prepare();
        site.host.write("/etc/containerd/config.toml", SETTINGS);
        let mut daemon = site.host.command(&["containerd"]);
        let log = std::fs::File::create(site.lab.root().join("containerd.log")).unwrap();
        let daemon = Background(daemon.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let containerd = Self { _daemon: daemon, site };
        containerd.wait_until("it serves", |host| {
            host.command(&["ctr", "version"]).output().unwrap().status.success()
        });
        Some(containerd)
    }

    fn wait_until(&self, what: &str, done: impl Fn(&crate::host::Host) -> bool) {
        let begun = Instant::now();
        while !done(&self.site.host) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}:\n{}", log(&self.site.lab));
            sleep(Duration::from_millis(20));
        }
    }

    /// The words of `ctr run`. There is no cpu controller in a cgroup2 beside cgroup v1.
    fn words<'a>(root: &'a str, name: &'a str, script: &[&'a str]) -> Vec<&'a str> {
        let mut words =
            vec!["ctr", "run", "--rm", "--cni", "--cpu-shares", "0", "--rootfs", root, name, "/bin/sh", "-c"];
        words.extend(script);
        words
    }

    fn root(&self, name: &str) -> String {
        let root = self.site.lab.directory(&format!("rootfs-{name}")).unwrap();
        rootfs::make(&root);
        root.to_str().unwrap().to_owned()
    }

    /// Runs a container to its end; what it printed.
    fn run(&self, name: &str, script: &[&str]) -> String {
        self.site.host.run(&Self::words(&self.root(name), name, script))
    }

    /// Starts a server. `ctr` must wait for its end: a detached container's network is nobody's to remove.
    fn serve(&self, name: &str) -> Background {
        let root = self.root(name);
        let mut command = self.site.host.command(&Self::words(&root, name, &[SERVER]));
        let server = Background(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        self.wait_until("a server runs", |host| host.run(&["ctr", "task", "list"]).contains(name));
        server
    }

    fn kill(&self, name: &str) {
        self.site.host.run(&["ctr", "task", "kill", "--signal", "9", name]);
    }
}

fn log(lab: &Lab) -> String {
    std::fs::read_to_string(lab.root().join("containerd.log")).unwrap_or_default()
}

#[test]
fn containerds_containers_talk_over_the_fast_path_and_leave_nothing() {
    let Some(containerd) = Containerd::prepare() else { return };
    let site = &containerd.site;
    containerd.run("first", &["ip address show eth0"]);
    let before = site.inventory();

    let [server, client] = ["server", "client"].map(|name| containerd.serve(name));
    // containerd's own namespace, `default`, is part of the id.
    assert_eq!(site.port("default-server").network, NETWORK);
    let address = site.address("default-server");
    let exec =
        ["ctr", "task", "exec", "--exec-id", "talk", "client", "/bin/sh", "-c", CLIENT, "sh", &address];
    let said = site.host.run(&exec);
    assert!(said.contains(SAME), "{said}");
    site.assert_fast("default-server");
    site.assert_fast("default-client");

    containerd.kill("server");
    containerd.kill("client");
    server.wait();
    client.wait();
    site.assert_clean(&before);
    let Containerd { _daemon: daemon, site } = containerd;
    drop(daemon);
    site.leave();
}
