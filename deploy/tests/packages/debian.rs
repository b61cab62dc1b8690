//! A node of Debian's, from the first package to a purge.

use std::fs;
use std::time::{Duration, Instant};

use shunt_lab::patience;

use crate::made::make;
use crate::node::Node;
use crate::served::{self, Flow};

/// How long it may take from a package to the first packet on the fast path.
const FIRST_PACKET: Duration = Duration::from_secs(60);

/// The agent's process.
fn agent(node: &Node) -> String {
    node.run("cat /run/shunt-agent.pid")
}

#[test]
fn a_node_is_installed_upgraded_rolled_back_and_purged_without_a_lost_packet() {
    let Some(node) = Node::start(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["1.0.0", "1.1.0"].map(|version| node.bring(&make(directory.path(), version).deb));
    let before = node.paths();

    let begun = Instant::now();
    node.run(&format!("dpkg -i {old}"));
    served::configure(&node);
    served::start(&node);
    served::assert_reached(&node);
    assert!(served::fast(&node) > 0, "the first packet takes the fast path");
    assert!(begun.elapsed() < patience(FIRST_PACKET), "{:?}", begun.elapsed());
    served::assert_left_alone(&node);
    assert_eq!(node.run("dpkg -V shunt"), "", "what was installed is what was packed");

    for (package, version) in [(&new, "1.1.0"), (&old, "1.0.0")] {
        let (process, fast) = (agent(&node), served::fast(&node));
        let flow = Flow::begin(&node);
        node.run(&format!("dpkg -i {package}"));
        flow.assert_whole(20);
        assert_eq!(
            node.run("dpkg-query -W -f '${Version} ${db:Status-Status}' shunt"),
            format!("{version} installed")
        );
        assert_ne!(agent(&node), process, "another agent runs");
        assert!(served::fast(&node) >= fast, "it has the programs of the one before");
    }

    let said = node.refuse("dpkg --purge shunt");
    assert!(said.contains("names the plugin shunt") && said.contains("shunt: not removed"), "{said}");
    assert_eq!(node.run("dpkg-query -W -f '${db:Status-Status}' shunt"), "installed");
    served::assert_reached(&node);
    let process = agent(&node);
    node.run(&format!("rm {}", served::NETWORK));

    let flow = Flow::begin(&node);
    node.run("dpkg --purge shunt");
    flow.assert_whole(5);
    assert!(!node.root.join("opt/cni/bin/shunt").exists());
    node.refuse(&format!("kill -0 {process}"));
    served::assert_reached(&node);
    node.run("ip netns del one; ip netns del two; ip link del shunt0; rm -r /var/lib/cni");
    assert_eq!(left(&before, &node.paths()), Vec::<String>::new());
    assert!(!node.run("ip -d link").contains("shunt"), "no interface and no mark is left");
}

#[test]
fn a_network_that_is_left_does_not_keep_a_package_that_was_given_up() {
    let Some(node) = Node::start(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let package = node.bring(&make(directory.path(), "1.0.0").deb);
    node.run(&format!("dpkg -i {package}"));
    served::configure(&node);
    let said = node.refuse("dpkg --purge shunt");
    assert!(said.contains("uninstall --keep-agent --force"), "{said}");
    // As it says.
    let said = node.run("shunt-agent uninstall --keep-agent --force");
    assert!(said.contains("lost: /etc/cni/net.d/10-shunt.conf: names the plugin shunt"), "{said}");
    let said = node.run("dpkg --purge shunt");
    assert!(said.contains("10-shunt.conf: names the plugin shunt, which is gone"), "{said}");
    assert!(!node.root.join("opt/cni/bin/shunt").exists() && !node.root.join("var/lib/shunt").exists());
    assert!(node.root.join(&served::NETWORK[1..]).exists(), "it is the operator's");
}

#[test]
fn a_file_that_no_agent_can_use_does_not_keep_the_package_for_good() {
    let Some(node) = Node::start(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let package = node.bring(&make(directory.path(), "1.0.0").deb);
    node.run(&format!("dpkg -i {package}"));
    node.run("echo 'admision = \"warn\"' >> /etc/shunt/agent.toml");
    let said = node.refuse("dpkg --purge shunt");
    assert!(said.contains("/etc/shunt/agent.toml: ") && said.contains("Correct the file"), "{said}");
    node.run("shunt-agent status");
    assert_eq!(node.run("dpkg-query -W -f '${db:Status-Status}' shunt"), "installed", "nothing is changed");
    // The other way that is named.
    node.run("shunt-agent uninstall --keep-agent --force");
    node.run("dpkg --purge shunt");
    for path in ["/opt/cni/bin/shunt", "/var/lib/shunt", "/sys/fs/bpf/shunt", "/etc/shunt"] {
        node.run(&format!("test ! -e {path}"));
    }
}

#[test]
fn the_plugin_is_renewed_and_taken_away_wherever_it_was_put() {
    let Some(node) = Node::start(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["1.0.0", "1.1.0"].map(|version| node.bring(&make(directory.path(), version).deb));
    node.run(&format!("dpkg -i {old}"));
    node.run("mkdir -p /usr/lib/runtime-cni; echo reference > /usr/lib/runtime-cni/bridge");
    let put =
        "shunt-agent install-plugin --drop-in --from /usr/libexec/shunt/shunt --bin-dir /usr/lib/runtime-cni";
    node.run(put);
    assert_eq!(node.run("readlink /usr/lib/runtime-cni/bridge"), "shunt\n");
    let plugin = || node.run("stat -c %i /usr/lib/runtime-cni/shunt");
    let before = plugin();
    node.run(&format!("dpkg -i {new}"));
    assert_ne!(plugin(), before, "an upgrade renews it");
    assert_eq!(node.run("readlink /usr/lib/runtime-cni/bridge"), "shunt\n");
    node.run("dpkg --purge shunt");
    assert_eq!(node.run("cat /usr/lib/runtime-cni/bridge; ls /usr/lib/runtime-cni"), "reference\nbridge\n");
    node.run("test ! -e /opt/cni/bin/shunt && test ! -e /var/lib/shunt");
}

/// What is there and was not.
fn left<'a>(before: &[String], after: &'a [String]) -> Vec<&'a str> {
    after.iter().filter(|path| !before.contains(path)).map(String::as_str).collect()
}

#[test]
fn an_image_without_systemd_keeps_an_edited_file_until_it_is_purged() {
    let Some(node) = Node::start(false) else { return };
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["1.0.0", "1.1.0"].map(|version| node.bring(&make(directory.path(), version).deb));
    let before = node.paths();
    node.run(&format!("dpkg -i {old}"));
    assert!(!node.root.join("run/shunt/agent.sock").exists(), "no agent is started");
    let bin = node.root.join("opt/cni/bin");
    assert_eq!(fs::read_link(bin.join("shunt-ipam")).unwrap().to_str(), Some("shunt"));
    assert!(node.root.join("etc/systemd/system/multi-user.target.wants/shunt-agent.service").is_symlink());

    // An operator's edit, and a reference plugin that came under a name of shunt's.
    node.run("echo 'admission = \"warn\"' >> /etc/shunt/agent.toml; echo other > /opt/cni/bin/mine");
    node.run(&format!("dpkg -i {new}"));
    let edited = node.root.join("etc/shunt/agent.toml");
    assert!(fs::read_to_string(&edited).unwrap().ends_with("admission = \"warn\"\n"));
    node.run("dpkg --remove shunt");
    assert!(edited.exists(), "it is the operator's until a purge");
    assert!(!bin.join("shunt").exists() && !bin.join("shunt-ipam").exists());
    node.run("dpkg --purge shunt");
    assert!(!edited.exists());
    assert_eq!(
        left(&before, &node.paths()),
        ["/opt/cni", "/opt/cni/bin", "/opt/cni/bin/mine"],
        "others' files stay"
    );
}

#[test]
fn an_agent_that_could_not_start_anew_is_not_stopped() {
    let Some(node) = Node::start(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["1.0.0", "1.1.0"].map(|version| node.bring(&make(directory.path(), version).deb));
    node.run(&format!("dpkg -i {old}"));
    let process = agent(&node);
    node.run("echo 'admision = \"warn\"' >> /etc/shunt/agent.toml");
    let said = node.refuse(&format!("dpkg -i {new}"));
    assert!(said.contains("admission") && said.contains("dpkg --configure shunt"), "{said}");
    assert_eq!(agent(&node), process);
    node.run("shunt-agent status");
    node.run("sed -i s/admision/admission/ /etc/shunt/agent.toml; dpkg --configure shunt");
    assert_ne!(agent(&node), process);
    // A file whose text is good, and that no agent starts with on this node.
    let process = agent(&node);
    node.run("echo 'group = \"no-such-group-here\"' >> /etc/shunt/agent.toml");
    let said = node.refuse(&format!("dpkg -i {old}"));
    assert!(said.contains("there is no group no-such-group-here"), "{said}");
    assert_eq!(agent(&node), process);
    node.run("shunt-agent status");
    node.run("sed -i /^group/d /etc/shunt/agent.toml; dpkg --configure shunt");
    assert_ne!(agent(&node), process);

    // One that an administrator has stopped and disabled stays so.
    node.run("systemctl disable --now shunt-agent.service");
    node.run(&format!("dpkg -i {old}"));
    node.refuse("systemctl is-active shunt-agent.service");
    node.run("dpkg --purge shunt");
    assert!(!node.root.join("var/lib/shunt").exists());
}

#[test]
fn the_tar_file_leaves_an_operators_file_alone_and_can_be_taken_away() {
    let Some(node) = Node::start(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    let archive = node.bring(&make(directory.path(), "1.0.0").tarball);
    let before = node.paths();
    node.run("mkdir -p /etc/shunt; echo 'admission = \"warn\"' > /etc/shunt/agent.toml");
    node.run(&format!("tar -C / -xzf {archive}"));
    node.run("shunt-agent install-plugin --from /usr/libexec/shunt/shunt; systemctl start shunt-agent");
    assert!(node.run("shunt-agent config show").contains("warn"), "the operator's file is in force");
    node.run(&format!("shunt-agent uninstall --keep-agent && tar -tzf {archive} | sed 's|^|/|' | xargs rm"));
    node.run("systemctl stop shunt-agent; rm -r /etc/shunt");
    let after = node.paths();
    let left: Vec<_> =
        left(&before, &after).into_iter().filter(|path| !node.root.join(&path[1..]).is_dir()).collect();
    assert_eq!(left, Vec::<&str>::new());
}
