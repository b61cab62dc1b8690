//! A node: a copy of a Debian root, in namespaces of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use shunt_lab::{Lacking, skip};
use tempfile::TempDir;

/// Mounts what a node has and then only waits, as the first process of the namespaces, which adopts and reaps the agent. Whatever is
/// mounted, made or started inside ends with it.
const INIT: &str = r#"
set -e
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t bpf bpf "$1/sys/fs/bpf"
mount -t tmpfs tmpfs "$1/run"
mkdir -p "$1/run/systemd" "$1/run/netns"
ip link set lo up
echo ready
exec chroot "$1" /bin/sh -c 'sleep infinity & wait'
"#;

/// Stands in for systemd, of which it knows one unit.
const SYSTEMCTL: &str = include_str!("systemctl.sh");

/// A machine with a package manager.
pub(crate) struct Node {
    /// Where it is seen from outside.
    pub(crate) root: PathBuf,
    holder: Child,
    /// The first process, as it is seen from outside.
    init: String,
    _directory: TempDir,
}

impl Node {
    /// None, having said so, where there is no root. `systemd` says whether it runs.
    pub(crate) fn start(systemd: bool) -> Option<Self> {
        let Some(archive) = std::env::var_os("SHUNT_DEBIAN_ROOT").map(PathBuf::from) else {
            skip(Lacking::Package("a Debian root (cargo xtask setup makes it, SHUNT_DEBIAN_ROOT names it)"));
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&root).status().unwrap();
        assert!(unpacked.success(), "{}", archive.display());
        let systemctl = root.join("usr/bin/systemctl");
        fs::write(&systemctl, SYSTEMCTL).unwrap();
        fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        let mut holder = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--net",
                "--uts",
                "--ipc",
                "--pid",
                "--fork",
                "--kill-child",
            ])
            .args(["sh", "-c", INIT, "sh"])
            .arg(&root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let init = fs::read_to_string(children).unwrap().trim().to_owned();
        let mut node = Self { root, holder, init, _directory: directory };
        if line != "ready\n" {
            let mut why = String::new();
            node.holder.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("no node: {why}");
        }
        if systemd {
            node.run("mkdir /run/systemd/system");
        }
        Some(node)
    }

    /// Puts a package where the node finds it.
    pub(crate) fn bring(&self, package: &Path) -> String {
        let name = package.file_name().unwrap().to_str().unwrap();
        fs::create_dir_all(self.root.join("srv")).unwrap();
        fs::copy(package, self.root.join("srv").join(name)).unwrap();
        format!("/srv/{name}")
    }

    /// A program of the machine's, in the node's namespaces, with the machine's files.
    pub(crate) fn program_of_machine(&self, program: &str) -> Command {
        let mut command = self.enter(&[]);
        command.arg(program);
        command
    }

    fn enter(&self, more: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.init, "--mount", "--net", "--uts", "--ipc", "--pid"]).args(more);
        command
    }

    /// A command line, as root on the node.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = self.enter(&["--root", "--wdns=/"]);
        command
            .args(["sh", "-c", line])
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        command
    }

    /// What it says, which has to succeed.
    pub(crate) fn run(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}\n{}", text(&output), self.log());
        text(&output)
    }

    /// What it says, which has to fail.
    pub(crate) fn refuse(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(!output.status.success(), "{line}: {}", text(&output));
        text(&output)
    }

    /// What the agent has logged.
    fn log(&self) -> String {
        fs::read_to_string(self.root.join("var/log/shunt-agent.log")).unwrap_or_default()
    }

    /// Every path but those of the package managers' own files, logs, and what is brought.
    pub(crate) fn paths(&self) -> Vec<String> {
        let found = self.run(
            "find / -xdev \\( -path /proc -o -path /sys -o -path /srv -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /var/log \
             -o -path /var/cache -o -path /tmp \\) -prune -o -print; find /run /sys/fs/bpf",
        );
        found.lines().map(str::to_owned).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // All else in its namespaces ends with the first process; whoever waits for that one ends by itself.
        let _ended = Command::new("kill").args(["-KILL", &self.init]).status();
        let _ended = self.holder.wait();
    }
}

/// Both outputs.
pub(crate) fn text(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    out + &err
}
