//! `shunt-agent test` on a node: what works, what does not, and what is left.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use shunt_lab::{Binaries, Lab, Namespace, Node};

use crate::stage::Stage;

/// A node whose configuration is a file, as a runtime has it.
fn node(capabilities: &Value) -> (Stage, PathBuf) {
    let stage = Stage::empty();
    let path = write(&stage, &plugin(&stage, capabilities));
    (stage, path)
}

fn plugin(stage: &Stage, capabilities: &Value) -> Value {
    let range = |subnet: &str| json!([{ "subnet": subnet }]);
    json!({
        "type": "shunt",
        "bridge": "cni0",
        "isDefaultGateway": true,
        "ipMasq": true,
        "agentSocket": stage.node.agent().socket(),
        "capabilities": capabilities,
        "ipam": {
            "type": "shunt-ipam",
            "ranges": [range("10.77.0.0/24"), range("fd77::/64")],
            "dataDir": stage.node.leases(),
        },
    })
}

fn write(stage: &Stage, plugin: &Value) -> PathBuf {
    let list = json!({ "cniVersion": "1.0.0", "name": "pods", "plugins": [plugin] });
    let path = stage.lab.root().join("10-pods.conflist");
    std::fs::write(&path, list.to_string()).unwrap();
    path
}

fn command(stage: &Stage, conflist: &Path, arguments: &[&str]) -> Command {
    let mut command = command_of(stage, conflist, stage.node.plugins());
    command.arg("--run-dir").arg(run_dir(stage)).args(arguments);
    command
}

/// With the namespaces where they are unless something else is said.
fn command_of(stage: &Stage, conflist: &Path, plugins: &Path) -> Command {
    let mut command = Command::new(Binaries::find().unwrap().agent());
    command.args(["test", "--json", "--socket"]).arg(stage.node.agent().socket());
    command.arg("--conflist").arg(conflist).arg("--bin-dir").arg(plugins);
    command
}

/// It is not there before, nor after.
fn run_dir(stage: &Stage) -> PathBuf {
    stage.lab.root().join("test")
}

fn run(stage: &Stage, conflist: &Path, arguments: &[&str]) -> (Output, Value) {
    run_command(stage, command(stage, conflist, arguments))
}

fn run_command(stage: &Stage, mut command: Command) -> (Output, Value) {
    let output = stage.node.namespace().enter(|| command.output()).unwrap().unwrap();
    let told = serde_json::from_slice(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, told.unwrap_or_else(|error| panic!("{error}: {said}")))
}

fn case<'a>(told: &'a Value, case: &str, family: &str) -> &'a Value {
    let cases = told["cases"].as_array().unwrap();
    let found = cases.iter().find(|row| row["case"] == case && row["family"] == family);
    found.unwrap_or_else(|| panic!("no {case} over {family} in {told:#}"))
}

fn assert_nothing_left(stage: &Stage) {
    // Programs that were loaded for the first of these stay for the next.
    let mut left = stage.left();
    left.retain(|line| !["pin v2/restricted/", "pin v2/programs/"].iter().any(|pin| line.starts_with(pin)));
    assert!(left.is_empty(), "{left:?}");
    assert!(!run_dir(stage).exists());
}

/// The same behind one that was killed: it had made its directory, which to the next one is the caller's.
fn assert_nothing_left_but_the_directory(stage: &Stage) {
    std::fs::remove_dir(run_dir(stage)).expect("it is empty");
    assert_nothing_left(stage);
}

#[test]
fn on_a_good_node_everything_passes_mostly_by_the_fast_path_and_nothing_is_left() {
    let (stage, conflist) = node(&json!({ "portMappings": true, "bandwidth": true }));
    let (output, told) = run(&stage, &conflist, &["--perf"]);
    let passed = told["cases"].as_array().unwrap().iter().all(|row| row["outcome"] == "passed");
    assert!(passed && told["passed"] == true && output.status.success(), "{told:#}");
    for family in ["IPv4", "IPv6"] {
        for name in ["same bridge", "same bridge, DNS-sized", "same bridge, large"] {
            let row = case(&told, name, family);
            let [fast, kernel] = ["fast", "kernel"].map(|path| row[path].as_u64().unwrap());
            assert!(fast >= 50 && fast > 9 * kernel, "{row:#}");
        }
        for name in ["gateway", "out", "host port", "host port, neighbour", "host port, hairpin"] {
            let row = case(&told, name, family);
            assert!(row["fast"].as_u64().unwrap() + row["kernel"].as_u64().unwrap() >= 50, "{row:#}");
        }
    }
    for family in ["IPv4", "IPv6"] {
        for name in ["limit", "policy: portIsolation", "policy: ingressPolicy isolated"] {
            case(&told, name, family);
        }
        let row = case(&told, "policy: ingressPolicy same-bridge", family);
        assert!(row["fast"].as_u64().unwrap() > 0, "{row:#}");
    }
    let measured = told["perf"].as_array().unwrap();
    println!("{measured:#?}");
    let is_fast = |row: &Value| ["shunt", "kernel"].iter().all(|path| row[path].as_f64().unwrap() > 100.0);
    assert!(measured.len() == 4 && measured.iter().all(is_fast), "{told:#}");
    assert_nothing_left(&stage);
}

#[test]
fn what_a_node_does_not_have_is_skipped_and_what_is_broken_fails_with_a_code() {
    let (stage, conflist) = node(&json!({}));
    // The node's firewall lets nobody out.
    let rules = "add table inet t; add chain inet t f { type filter hook forward priority 0; }; \
                 add rule inet t f iifname \"cni0\" oifname != \"cni0\" drop";
    stage.node.namespace().command("nft", &[rules]).unwrap();
    let (output, told) = run(&stage, &conflist, &[]);
    assert_eq!(output.status.code(), Some(3), "{told:#}");
    assert_eq!(case(&told, "out", "IPv4")["outcome"], "failed", "{told:#}");
    assert_eq!(case(&told, "same bridge", "IPv4")["outcome"], "passed", "{told:#}");
    for (name, why) in [("host port", "portMappings"), ("limit", "bandwidth")] {
        let row = case(&told, name, "IPv4");
        assert!(row["outcome"] == "skipped" && row["detail"].as_str().unwrap().contains(why), "{row:#}");
    }
    stage.node.namespace().command("nft", &["delete table inet t"]).unwrap();
    assert_nothing_left(&stage);
}

#[test]
fn what_others_hold_in_its_directory_stays() {
    let (stage, conflist) = node(&json!({}));
    let held = run_dir(&stage);
    std::fs::create_dir(&held).unwrap();
    let pod = Namespace::create(&held.join("one")).unwrap();
    std::fs::write(held.join("words"), "words").unwrap();
    let inode = || std::fs::metadata(pod.path()).unwrap().ino();
    let before = inode();
    let (output, told) = run(&stage, &conflist, &[]);
    assert!(output.status.success(), "{told:#}");
    assert_eq!(inode(), before, "the namespace is mounted where it was");
    assert_eq!(std::fs::read_to_string(held.join("words")).unwrap(), "words");
    assert_eq!(std::fs::read_dir(&held).unwrap().count(), 2, "the test's own directory is gone");
}

#[test]
fn a_network_that_hands_its_calls_to_the_agent_is_tried_where_the_agent_takes_namespaces() {
    let lab = Lab::new().unwrap();
    let root = lab.root().display();
    let api = format!("[api]\nsocket = '{root}/cni.sock'\ncache_dir = '{root}/cache'\n");
    let file = format!("{api}cni_path = ['{root}/node-plugins']\n");
    let node = Node::start_by(&lab, "node", &file).unwrap();
    let stage = Stage::of(lab, node);
    let mut plugin = plugin(&stage, &json!({ "portMappings": true }));
    plugin["viaAgent"] = json!(stage.lab.root().join("cni.sock"));
    let conflist = write(&stage, &plugin);
    let (output, told) = run_command(&stage, command_of(&stage, &conflist, stage.node.plugins()));
    assert!(output.status.success(), "{told:#}");
    assert_eq!(case(&told, "same bridge", "IPv6")["outcome"], "passed", "{told:#}");
    assert_nothing_left(&stage);
    assert!(!Path::new("/run/netns/shunt-test").exists());
    // Elsewhere they are refused, with the cure.
    let elsewhere = || command(&stage, &conflist, &[]).output();
    let refused = stage.node.namespace().enter(elsewhere).unwrap().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("--run-dir"), "{said}");
    assert_nothing_left(&stage);
}

#[test]
fn a_network_of_ipv6_alone_is_tried_and_measured_over_ipv6() {
    let stage = Stage::empty();
    let mut plugin = plugin(&stage, &json!({ "portMappings": true }));
    plugin["ipam"]["ranges"] = json!([[{ "subnet": "fd77::/64" }]]);
    let (output, told) = run(&stage, &write(&stage, &plugin), &["--perf"]);
    assert!(output.status.success(), "{told:#}");
    for row in told["cases"].as_array().unwrap().iter().filter(|row| row["family"] == "IPv4") {
        assert_eq!(row["outcome"], "skipped", "{row:#}");
    }
    assert_eq!(case(&told, "same bridge", "IPv6")["outcome"], "passed", "{told:#}");
    let measured = told["perf"].as_array().unwrap();
    assert!(measured.len() == 4 && measured.iter().all(|row| row["family"] == "IPv6"), "{told:#}");
    assert_nothing_left(&stage);
}

#[test]
fn a_signal_ends_it_and_leaves_nothing_and_a_dead_agent_is_named() {
    let (mut stage, conflist) = node(&json!({ "portMappings": true, "bandwidth": true }));
    let (code, said) = ended_early(&stage, command(&stage, &conflist, &[]));
    assert!(code == Some(1) && said.contains("ended by a signal"), "{said}");
    assert_nothing_left(&stage);
    stage.node.agent_mut().kill().unwrap();
    let output = stage.node.namespace().enter(|| command(&stage, &conflist, &[]).output()).unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("cannot be reached"), "{said}");
}

/// Starts it, and ends it with SIGTERM when the first container is there: the code, and what is said.
fn ended_early(stage: &Stage, mut command: Command) -> (Option<i32>, String) {
    let child = start(stage, &mut command);
    while stage.node.agent().ports().unwrap().is_empty() {
        sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    said_by(child)
}

fn start(stage: &Stage, command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    stage.node.namespace().enter(|| command.spawn()).unwrap().unwrap()
}

fn said_by(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The node's plugin behind a script, which decides what becomes of a call.
fn scripted(stage: &Stage, name: &str, script: &str) -> PathBuf {
    let (directory, plugins) = (stage.lab.directory(name).unwrap(), stage.node.plugins().display());
    let text = format!("#!/bin/sh\n{script}\nexport CNI_PATH='{plugins}'\nexec '{plugins}/shunt'\n");
    let path = directory.join("shunt");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn a_terminals_ctrl_c_kills_no_plugin() {
    let (stage, conflist) = node(&json!({}));
    let deleted = stage.lab.root().join("deleted");
    let script = "if [ $CNI_COMMAND = DEL ]; then echo $CNI_CONTAINERID >> 'DELETED'; sleep 1; fi";
    let plugins = scripted(&stage, "slow", &script.replace("DELETED", deleted.to_str().unwrap()));
    let mut command = command_of(&stage, &conflist, &plugins);
    command.arg("--run-dir").arg(run_dir(&stage)).process_group(0);
    let mut child = start(&stage, &mut command);
    while !deleted.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        sleep(Duration::from_millis(10));
    }
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let (code, said) = said_by(child);
    assert!(code == Some(1) && said.contains("everything was deleted"), "{said}");
    assert_nothing_left(&stage);
    let deleted = std::fs::read_to_string(&deleted).unwrap();
    let containers: BTreeSet<_> = deleted.lines().collect();
    assert_eq!(containers.len(), deleted.lines().count(), "one DEL of each: {deleted}");
}

#[test]
fn a_del_that_fails_is_tried_once_more_and_what_is_left_is_told() {
    let (stage, conflist) = node(&json!({}));
    let refuse = r#"echo '{ "cniVersion": "1.0.0", "code": 5, "msg": "the disk is full" }'; exit 1"#;
    let tried = format!("'{}'/tried-$CNI_CONTAINERID", stage.lab.root().display());
    let once = format!("if [ $CNI_COMMAND = DEL ] && [ ! -e {tried} ]; then touch {tried}; {refuse}; fi");
    let always = format!("if [ $CNI_COMMAND = DEL ]; then {refuse}; fi");
    let ended = |name, script: &str| {
        let mut command = command_of(&stage, &conflist, &scripted(&stage, name, script));
        command.arg("--run-dir").arg(run_dir(&stage));
        ended_early(&stage, command)
    };
    let (code, said) = ended("once", &once);
    assert!(code == Some(1) && said.contains("everything was deleted"), "{said}");
    assert_nothing_left(&stage);
    let (code, said) = ended("always", &always);
    assert!(code == Some(3) && said.contains("not everything was deleted"), "{said}");
    for name in ["one", "two"] {
        let of = format!("-{name} of network pods: ");
        let is_told = |line: &str| {
            line.contains("not deleted: container shunt-test-")
                && line.contains(&of)
                && line.contains("the disk is full")
        };
        assert!(said.lines().any(is_told), "{name}: {said}");
    }
}

#[test]
fn what_a_killed_test_left_is_deleted_by_the_next_one() {
    let (stage, conflist) = node(&json!({ "portMappings": true }));
    let mut child = start(&stage, &mut command(&stage, &conflist, &[]));
    while stage.node.agent().ports().unwrap().len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What is in the middle of a call ends it.
    sleep(Duration::from_secs(1));
    let leases = || std::fs::read_dir(stage.node.leases().join("pods")).unwrap().flatten();
    let addresses = || leases().filter(|entry| entry.file_name().to_string_lossy().contains("77")).count();
    assert!(addresses() >= 4, "two containers have an address of each family");
    let (output, told) = run(&stage, &conflist, &[]);
    assert!(output.status.success(), "{told:#}");
    assert_eq!(addresses(), 0);
    assert_nothing_left_but_the_directory(&stage);
}

#[test]
fn a_second_signal_ends_it_at_once_and_says_what_the_next_test_deletes() {
    let (stage, conflist) = node(&json!({}));
    let deleted = stage.lab.root().join("deleted");
    let script = format!("if [ $CNI_COMMAND = DEL ]; then touch '{}'; sleep 5; fi", deleted.display());
    let mut slow = command_of(&stage, &conflist, &scripted(&stage, "slow", &script));
    let mut child = start(&stage, slow.arg("--run-dir").arg(run_dir(&stage)));
    let process = Pid::from_raw(child.id().cast_signed());
    while stage.node.agent().ports().unwrap().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        sleep(Duration::from_millis(10));
    }
    kill(process, Signal::SIGINT).unwrap();
    while !deleted.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        sleep(Duration::from_millis(10));
    }
    let begun = Instant::now();
    kill(process, Signal::SIGINT).unwrap();
    let (code, said) = said_by(child);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(code == Some(3) && said.contains("not deleted: container shunt-test-"), "{said}");
    // Its DEL ends by itself.
    sleep(Duration::from_secs(6));
    let (output, told) = run(&stage, &conflist, &[]);
    assert!(output.status.success(), "{told:#}");
    assert_nothing_left_but_the_directory(&stage);
}
