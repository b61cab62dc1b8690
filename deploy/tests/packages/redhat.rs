//! The package of RPM, by its own tools.

use std::path::Path;
use std::process::Command;

use shunt_lab::{Lacking, skip};

use crate::made::make;
use crate::node::{Node, text};

/// What `rpm` says, which has to succeed; none, having said so, where there is none.
fn rpm(arguments: &[&str], package: &Path) -> Option<String> {
    let Ok(output) = Command::new("rpm").args(arguments).arg(package).env("LC_ALL", "C").output() else {
        skip(Lacking::Package("rpm"));
        return None;
    };
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    Some(text(&output))
}

#[test]
fn rpm_reads_what_the_package_is_and_what_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let package = make(directory.path(), "1.2.3").rpm;
    let Some(about) = rpm(&["-qip"], &package) else { return };
    for line in [
        "Name        : shunt",
        "Version     : 1.2.3",
        "License     : MIT OR Apache-2.0",
        "Build Host  : localhost",
    ] {
        assert!(about.contains(line), "{line}: {about}");
    }
    let files = rpm(&["-qlp"], &package).unwrap();
    for file in [
        "/usr/sbin/shunt-agent",
        "/opt/cni/bin",
        "/etc/shunt/agent.toml",
        "/usr/share/man/man8/shunt-agent-run.8.gz",
    ] {
        assert!(files.lines().any(|line| line == file), "{file}: {files}");
    }
    let operators = rpm(&["-qcp"], &package).unwrap();
    assert_eq!(operators, "/etc/shunt/agent.toml\n");
    let digests = rpm(&["-Kv", "--nosignature"], &package).unwrap();
    assert!(digests.contains("Payload SHA256 digest: OK") && !digests.contains("BAD"), "{digests}");
    let scripts = rpm(&["-qp", "--scripts"], &package).unwrap();
    assert_eq!(scripts.matches("scriptlet (using /bin/sh):").count(), 3, "{scripts}");
}

/// The node has no rpm and no packages of it: the machine's works on its root, in its namespaces, and the scripts run in that root.
fn on(node: &Node, arguments: &str, package: &str) -> std::process::Output {
    let root = node.root.display();
    let mut line = node.program_of_machine("rpm");
    line.args(["--root", &root.to_string(), "--dbpath", "/var/lib/rpm", "--nosignature"]);
    line.args(arguments.split(' ')).arg(package).env("LC_ALL", "C").output().unwrap()
}

#[test]
fn rpm_installs_upgrades_rolls_back_and_erases() {
    let Some(node) = Node::start(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["1.0.0", "1.1.0"].map(|version| make(directory.path(), version).rpm);
    let before = node.paths();
    let run = |arguments: &str, package: &str| {
        let output = on(&node, arguments, package);
        assert!(output.status.success(), "{arguments}: {}", text(&output));
        // On standard error Debian's rpm says that it is no package manager there.
        String::from_utf8(output.stdout).unwrap()
    };
    let [old, new] = [&old, &new].map(|path| path.to_str().unwrap());
    run("--install --nodeps", old);
    assert!(node.root.join("opt/cni/bin/shunt-ipam").is_symlink());
    node.refuse("systemctl is-active shunt-agent.service");
    node.run("systemctl start shunt-agent.service");
    let process = || node.run("cat /run/shunt-agent.pid");
    assert_eq!(run("--verify --nodeps", "shunt"), "");
    node.run("echo 'admission = \"warn\"' >> /etc/shunt/agent.toml");
    let first = process();
    run("--upgrade --nodeps", new);
    let second = process();
    assert_ne!(first, second, "the new agent runs");
    assert_eq!(run("--query", "shunt").trim_end().split('-').nth(1), Some("1.1.0"));
    assert!(node.run("tail -n 1 /etc/shunt/agent.toml").contains("warn"), "an edited file stays");
    run("--upgrade --oldpackage --nodeps", old);
    assert_eq!(run("--query", "shunt").trim_end().split('-').nth(1), Some("1.0.0"));
    assert_ne!(process(), second, "the old agent runs");
    assert!(node.run("tail -n 1 /etc/shunt/agent.toml").contains("warn"), "an edited file stays");

    // Without the new agent the plugin stays that of the old one.
    let plugin = || node.run("stat -c %i /opt/cni/bin/shunt");
    let before_it = plugin();
    node.run(
        "cp -p /usr/bin/systemctl /srv; sed -i '2i [ \"$1\" != try-restart ] || exit 1' /usr/bin/systemctl",
    );
    let said = text(&on(&node, "--upgrade --nodeps", new));
    assert!(said.contains("shunt: the agent does not start") && plugin() == before_it, "{said}");
    node.run("mv /srv/systemctl /usr/bin; systemctl restart shunt-agent.service");

    // A network that would lose its plugin keeps the package.
    node.run("echo '{\"type\": \"shunt\"}' > /etc/cni/net.d/10-shunt.conf");
    let refused = on(&node, "--erase --nodeps", "shunt");
    let said = text(&refused);
    assert!(!refused.status.success() && said.contains("names the plugin shunt"), "{said}");
    node.run("shunt-agent status");
    // Nor is a unit stopped whose agent does not come up.
    node.run("systemctl stop shunt-agent.service; rm /var/log/systemctl.log");
    let refused = on(&node, "--erase --nodeps", "shunt");
    assert!(!refused.status.success(), "{}", text(&refused));
    let asked = node.run("cat /var/log/systemctl.log || true");
    assert!(!asked.contains("stop"), "{asked}");
    node.run("systemctl start shunt-agent.service; rm /etc/cni/net.d/10-shunt.conf");
    let erased = on(&node, "--erase --nodeps", "shunt");
    assert!(erased.status.success(), "{}", text(&erased));
    // What rpm keeps of an operator's edit.
    node.run("rm /etc/shunt/agent.toml.rpmsave && rmdir /etc/shunt");
    let after = node.paths();
    let left: Vec<_> = after.iter().filter(|path| !before.contains(path)).collect();
    assert!(left.is_empty(), "{left:?}");
}
