//! DHCP: a server somewhere, and the reference IPAM's daemon, which keeps the leases of a node's containers.

use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Daemon, Lab, Lacking, Namespace, Node, patience, skip};

const CLIENT: &str = "/usr/lib/cni/dhcp";
const SERVER: &str = "busybox";

/// How long a server is waited for. It asks for two seconds whether anybody has an address before it leases it.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// How long a client may take to listen, and the server to hear of a lease that is given back.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server on `eth0` of somebody's namespace.
pub(crate) struct Server {
    _daemon: Daemon,
    leased: [IpAddr; 2],
    leases: PathBuf,
}

impl Server {
    /// Leases addresses from one to the other; the server's own is `at`, in front of a /24.
    pub(crate) fn start(lab: &Lab, namespace: &Namespace, at: &str, leased: [&str; 2]) -> Self {
        let directory = lab.directory("dhcp-server").unwrap();
        let [config, leases, pid, log] =
            ["udhcpd.conf", "leases", "udhcpd.pid", "udhcpd.log"].map(|name| directory.join(name));
        let text = [
            format!("start {}\nend {}\ninterface eth0\n", leased[0], leased[1]),
            format!("lease_file {}\npidfile {}\nauto_time 1\n", leases.display(), pid.display()),
            format!("option subnet 255.255.255.0\noption router {at}\noption lease 600\n"),
        ];
        std::fs::write(&config, text.concat()).unwrap();
        std::fs::write(&leases, "").unwrap();
        let mut command = Command::new(SERVER);
        command.args(["udhcpd", "-f"]).arg(&config);
        let leased = leased.map(|end| end.parse().unwrap());
        Self { _daemon: Daemon::start(namespace, command, &log).unwrap(), leased, leases }
    }

    /// Waits until so many leases are running.
    pub(crate) fn wait_for_leases(&self, count: usize) {
        let begun = Instant::now();
        while self.running() != count {
            assert!(begun.elapsed() < patience(PATIENCE), "{} leases", self.running());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn running(&self) -> usize {
        let leases = shunt_lab::run(SERVER, &["dumpleases", "-f", self.leases.to_str().unwrap()]).unwrap();
        leases.lines().skip(1).filter(|line| !line.contains("expired")).count()
    }

    /// These are one address, of its own.
    pub(crate) fn assert_leased(&self, addresses: &[IpAddr]) {
        let [from, to] = self.leased;
        assert!(addresses.len() == 1 && (from..=to).contains(&addresses[0]), "{addresses:?}");
    }
}

/// The daemon of a node.
pub(crate) struct Client {
    _daemon: Daemon,
    socket: PathBuf,
}

impl Client {
    /// Starts it, and puts the IPAM among the node's plugins; three times it waits for an answer. None where there is no such IPAM,
    /// having said so.
    pub(crate) fn start(lab: &Lab, node: &Node, waits: Duration) -> Option<Self> {
        if !Path::new(CLIENT).exists() {
            skip(Lacking::Package("containernetworking-plugins"));
            return None;
        }
        symlink(CLIENT, node.plugins().join("dhcp")).unwrap();
        let directory = lab.directory("dhcp-client").unwrap();
        let (socket, log) = (directory.join("dhcp.sock"), directory.join("dhcp.log"));
        let mut command = Command::new(CLIENT);
        let waits = format!("{}s", waits.as_secs());
        command.args(["daemon", "-timeout", &waits, "-resendmax", "1s", "-socketpath"]).arg(&socket);
        let daemon = Daemon::start(node.namespace(), command, &log).unwrap();
        let begun = Instant::now();
        while !socket.exists() {
            assert!(begun.elapsed() < patience(PATIENCE), "{}", daemon.log_tail());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { _daemon: daemon, socket })
    }

    /// The configuration of an IPAM that asks it.
    pub(crate) fn ipam(&self) -> Value {
        json!({ "type": "dhcp", "daemonSocketPath": self.socket })
    }
}
