//! A machine as a container runtime sees one: mounts, processes and cgroups of its own, around a node's network namespace.
//!
//! `/run`, `/var/lib`, `/opt` and `/dev/shm` are empty, `/etc` can be written without a trace, `/sys/fs/cgroup` is a cgroup2
//! that ends with the host. So runtimes run with their default paths and meet nobody else's containers, and whatever
//! they start dies with the host's first process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_lab::{Lab, Namespace, Node, run};

/// How long any one command may take, in seconds: `timeout` ends it then.
const PATIENCE: &str = "30";

/// Run by the first process, in the lab's directory, which is to stay where it is although `/run` becomes another.
const INIT: &str = r#"
set -e
lab=$(pwd)
mount -t tmpfs tmpfs /run
mkdir -p "$lab" /run/etc/upper /run/etc/work /run/lock /run/shunt
mount --no-canonicalize --rbind . "$lab"
cd "$lab"
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work /etc
for directory in /var/lib /opt /dev/shm; do
    mount -t tmpfs tmpfs "$directory"
done
umount -R -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
rm -rf /etc/cni /etc/containers/containers.conf
mkdir -p /etc/cni/net.d /etc/containers /etc/containerd /opt/cni
[ -z "$PLUGINS" ] || ln -s "$PLUGINS" /opt/cni/bin
[ -z "$AGENT" ] || ln -s "$AGENT" /run/shunt/agent.sock
ip link set lo up
touch "$lab/host-is-up"
while :; do sleep 1; done
"#;

/// The host. Dropping it ends everything that runs on it.
pub(crate) struct Host {
    child: Child,
    /// Its first process, in our numbers.
    first: String,
    network: PathBuf,
    group: PathBuf,
}

impl Host {
    /// Makes one around `node`'s network namespace, with the node's plugins and agent in their places.
    pub(crate) fn start(lab: &Lab, node: &Node) -> Self {
        let plugins = ("PLUGINS", node.plugins().to_owned());
        Self::around(lab, node.namespace(), &[plugins, ("AGENT", node.agent().socket().to_owned())])
    }

    /// Makes one on which nothing of shunt's is.
    pub(crate) fn bare(lab: &Lab, network: &Namespace) -> Self {
        Self::around(lab, network, &[])
    }

    fn around(lab: &Lab, network: &Namespace, links: &[(&str, PathBuf)]) -> Self {
        let groups = lab.directory("cgroup").unwrap();
        run("mount", &["-t", "cgroup2", "cgroup2", groups.to_str().unwrap()]).unwrap();
        sweep(&groups);
        let group = groups.join(lab.root().file_name().unwrap());
        std::fs::create_dir(&group).unwrap();
        let child = spawn_first(lab.root(), network, links, &group);
        let mut host = Self { child, first: String::new(), network: network.path().into(), group };
        host.wait_until_up(&lab.root().join("host-is-up"));
        host
    }

    fn wait_until_up(&mut self, sign: &Path) {
        let begun = Instant::now();
        while !sign.exists() {
            assert!(self.child.try_wait().unwrap().is_none(), "the host's first process ended");
            assert!(begun.elapsed() < Duration::from_secs(10), "the host does not come up");
            sleep(Duration::from_millis(5));
        }
        let parent = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
        children.trim().clone_into(&mut self.first);
    }

    /// A command on the host, ended when it takes too long.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first, "--mount", "--pid", "--cgroup"]);
        command.arg(format!("--net={}", self.network.display()));
        command.args(["sh", "-c", "echo 0 > /sys/fs/cgroup/cgroup.procs && exec timeout -k 1 \"$@\"", "sh"]);
        command.arg(PATIENCE).args(words).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end; what it printed.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{words:?}: {}\n{out}{err}", output.status);
        out.into_owned()
    }

    /// Writes a file on the host.
    pub(crate) fn write(&self, path: &str, text: &str) {
        self.run(&["sh", "-c", "printf %s \"$1\" > \"$2\"", "sh", text, path]);
    }

    /// The files below some of the host's directories, as far as they exist.
    pub(crate) fn files(&self, directories: &[&str]) -> Vec<String> {
        let mut words = vec!["sh", "-c", "find \"$@\" -type f 2> /dev/null; true", "sh"];
        words.extend(directories);
        self.run(&words).lines().map(str::to_owned).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The first process dies with its parent (`--kill-child`), and everything else on the host with it.
        drop(self.child.kill());
        drop(self.child.wait());
        let begun = Instant::now();
        while self.group.exists() && begun.elapsed() < Duration::from_secs(5) {
            remove_group(&self.group);
            sleep(Duration::from_millis(5));
        }
    }
}

fn spawn_first(lab: &Path, network: &Namespace, links: &[(&str, PathBuf)], group: &Path) -> Child {
    let namespaces = ["--mount", "--pid", "--fork", "--cgroup", "--kill-child", "--mount-proc"];
    let mut command = Command::new("sh");
    command.args(["-c", "echo 0 > \"$0/cgroup.procs\" && exec unshare \"$@\""]).arg(group);
    command.args(namespaces).args(["sh", "-c", INIT, "init"]).arg(lab.join("host-is-up"));
    command.current_dir(lab).envs(links.iter().map(|(name, path)| (name, path)));
    spawn_in(network, command)
}

fn spawn_in(namespace: &Namespace, mut command: Command) -> Child {
    namespace.enter(move || command.stdin(Stdio::null()).spawn()).unwrap().unwrap()
}

/// Removes the groups of test processes that were killed. They have their labs' names, which end in a process id and a
/// number.
fn sweep(groups: &Path) {
    for entry in std::fs::read_dir(groups).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("shunt-lab-")?.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove_group(&entry.path());
        }
    }
}

/// Removes a cgroup and those in it, as far as nothing lives there any more.
fn remove_group(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    drop(std::fs::remove_dir(group));
}
