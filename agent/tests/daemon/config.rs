//! `config check`, which needs no agent, and `config show`, which asks one.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use shunt_agent_api::{Client, ConfigOrigin, Reply, Request};

use crate::rig::Rig;
use crate::start::verb;

/// Runs a program that says something and ends. Its exit code, and what it said.
fn said(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn check(file: &Path) -> (i32, String) {
    said(Command::new(env!("CARGO_BIN_EXE_shunt-agent")).args(["config", "check"]).arg(file))
}

/// The same in JSON.
fn check_json(file: &Path) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    let (code, said) = said(command.args(["config", "check", "--json"]).arg(file));
    (code, serde_json::from_str(&said).unwrap())
}

/// A file of these bytes.
fn file(directory: &Path, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join("agent.toml");
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_file_that_no_agent_starts_with_is_refused_by_both_with_the_same_reason() {
    let rig = Rig::bare();
    let root = rig.lab.root();
    let [missing, directory] = ["missing.toml", "directory"].map(|name| root.join(name));
    fs::create_dir(&directory).unwrap();
    let too_long = root.join("long.toml");
    fs::write(&too_long, "#".repeat(10 << 20)).unwrap();
    let no_text = root.join("bytes.toml");
    fs::write(&no_text, b"socket = '/run/\xff'").unwrap();
    let with = |name: &str, text: &str| {
        let path = root.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    for (path, reason) in [
        (missing, "No such file"),
        (directory, "no regular file"),
        (too_long, "more than 1048576 bytes"),
        (no_text, "line 1 is no UTF-8 text"),
        (with("unknown.toml", "sokcet = '/run/x'"), "unknown field `sokcet`"),
        (with("type.toml", "max_flows = 'many'"), "invalid type: string \"many\""),
        (with("value.toml", "[cluster.vxlan]\nid = 0"), "id = 0 is no VNI"),
        (with("syntax.toml", "[uplinks"), "unclosed table"),
        (with("twice.toml", "group = 'a'\ngroup = 'b'"), "duplicate key"),
    ] {
        let (code, told) = check(&path);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains(reason) && told.contains("no agent starts with it"), "{reason}: {told}");
        let mut run = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
        run.arg("run").arg("--socket").arg(rig.socket()).arg("--config").arg(&path);
        let (code, log) = said(&mut run);
        assert_eq!(code, 2, "{log}");
        assert!(log.contains(reason), "{reason}: {log}");
    }
}

#[test]
fn a_check_tells_every_fault_with_key_line_reason_and_cure() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "sokcet = '/x'\n[uplinks.eth1]\nfactor = 0.0\n");
    let (code, told) = check_json(&path);
    assert_eq!((code, &told["usable"], &told["file"]), (2, &json!(false), &json!(path)));
    let faults = told["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 2, "{told}");
    assert_eq!(faults[0]["cure"], "did you mean `socket`?");
    let factor = json!({ "key": "uplinks.eth1.factor", "line": 3, "refused": true,
        "reason": "factor 0 is not above 0 and at most 100", "cure": faults[1]["cure"] });
    assert_eq!(faults[1], factor);
    let (code, told) = check(&path);
    assert!(
        code == 2 && told.contains("error: line 3: uplinks.eth1.factor: factor 0 is not above 0"),
        "{told}"
    );
}

#[test]
fn a_service_that_cannot_listen_keeps_the_agent_from_its_start_and_a_check_says_so() {
    let rig = Rig::bare();
    let (socket, root) = (rig.socket(), rig.lab.root());
    let own = format!("socket = '{0}'\n[api]\nsocket = '{0}'\n", socket.display());
    let no_group = format!("[api]\nsocket = '{}/cni.sock'\ngroup = 'no-such-group'\n", root.display());
    let no_socket = format!("[api]\nsocket = '{}'\n", root.display());
    for (text, key, reason) in [
        (own, "api.socket", "own socket"),
        (no_group, "api.group", "no group"),
        (no_socket, "api.socket", "is not a socket"),
    ] {
        let path = file(root, &text);
        let (code, told) = check_json(&path);
        let faults = told["faults"].as_array().unwrap();
        assert_eq!((code, faults.len(), faults[0]["key"].as_str()), (2, 1, Some(key)), "{told}");
        assert!(faults[0]["reason"].as_str().unwrap().contains(reason), "{told}");
        let mut command = rig.command("auto");
        command.arg("--config").arg(&path);
        assert_eq!(rig.run_to_end(command), 1, "{text}");
    }
}

#[test]
fn an_empty_file_is_good_and_so_is_one_that_fits_for_a_user_without_rights() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("shunt-agent");
    fs::copy(env!("CARGO_BIN_EXE_shunt-agent"), &program).unwrap();
    for text in
        ["", "state_dir = '/nonexistent/state'\nsocket = '/nonexistent/agent.sock'\nadmission = 'warn'\n"]
    {
        let path = file(dir.path(), text);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
        let (code, told) = said(command.args(["config", "check"]).arg(&path));
        assert!(code == 0 && told.contains("does all that it says"), "{code}: {told}");
    }
    let path = file(dir.path(), "");
    assert_eq!(check_json(&path), (0, json!({ "file": path, "usable": true, "faults": [] })));
}

#[test]
fn what_an_agent_starts_with_and_does_not_do_is_a_warning_of_both() {
    let mut rig = Rig::bare();
    let path =
        file(rig.lab.root(), "max_flows = 4096\nmax_flows_per_container = 5000\nmetrics_labels = 'node'\n");
    let (code, told) = check_json(&path);
    assert_eq!((code, &told["usable"]), (3, &json!(true)), "{told}");
    rig.run_with("auto", &["--config", path.to_str().unwrap()]);
    let status = rig.status();
    for (fault, line) in told["faults"].as_array().unwrap().iter().zip([2, 3]) {
        assert_eq!(fault["line"], line, "{told}");
        let reason = fault["reason"].as_str().unwrap();
        assert!(status.warnings.iter().any(|warning| warning.contains(reason)), "{reason}: {status:?}");
    }
    // What contradicts the room is not what is in force.
    let keys = in_force(&rig);
    assert_eq!(value(&keys, "max_flows"), (&json!(4096), "file"));
    assert_eq!(value(&keys, "max_flows_per_container"), (&json!(4096), "file"));
}

/// What `config show --json` says of the keys.
fn in_force(rig: &Rig) -> Value {
    let (code, json) = verb(rig, &["config", "show", "--json"]);
    assert_eq!(code, 0, "{json}");
    serde_json::from_str(&json).unwrap()
}

fn value<'a>(report: &'a Value, key: &str) -> (&'a Value, &'a str) {
    let keys = report["keys"].as_array().unwrap();
    let entry = keys.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("{key}: {report}"));
    (&entry["value"], entry["from"].as_str().unwrap())
}

#[test]
fn what_is_in_force_is_shown_with_where_it_comes_from() {
    let mut rig = Rig::bare();
    let path =
        file(rig.lab.root(), "socket = '/nowhere'\nadmission = 'warn'\n[uplinks.br0]\negress = 1000000000\n");
    let mut command = rig.command("auto");
    command.arg("--config").arg(&path).env("RUST_LOG", "warn").args([
        "--uplink",
        "br1",
        "--max-flows",
        "2048",
    ]);
    rig.run_command(command);
    let report = in_force(&rig);
    assert_eq!(report["file"], json!(path));
    for (key, wanted, from) in [
        ("socket", json!(rig.socket()), "flag"),
        ("admission", json!("warn"), "file"),
        ("uplinks.br0.egress", json!("1G"), "file"),
        ("uplinks.br0.ingress", Value::Null, "default"),
        ("uplinks.br1.factor", json!(1.0), "default"),
        ("max_flows", json!(2048), "flag"),
        ("max_flows_per_container", json!(512), "default"),
        ("mark_mask", json!(0x1060), "default"),
        ("log_format", json!("text"), "default"),
        ("log_lines", json!("warn"), "environment"),
        ("late_programs", json!(true), "flag"),
    ] {
        assert_eq!(value(&report, key), (&wanted, from), "{key}");
    }
    let (code, text) = verb(&rig, &["config", "show"]);
    let has = |words: &[&str]| text.lines().any(|line| line.split_whitespace().eq(words.iter().copied()));
    assert!(code == 0 && has(&["admission", "warn", "file,", "line", "2"]), "{text}");
    assert!(has(&["log_lines", "warn", "$RUST_LOG"]) && has(&["mark_mask", "0x1060", "default"]), "{text}");
    // A client of the crate reads it, too.
    let asked = Client::connect(&rig.socket()).unwrap().ask(Request::Config).unwrap();
    let Reply::Config(known) = asked else { panic!("{asked:?}") };
    let admission = known.keys.iter().find(|entry| entry.key == "admission").unwrap();
    assert_eq!(admission.origin, ConfigOrigin::File { line: 2 });
    // The file is not read again.
    fs::write(&path, "admission = 'off'").unwrap();
    assert_eq!(value(&in_force(&rig), "admission"), (&json!("warn"), "file"));
    rig.kill();
    let (code, told) = verb(&rig, &["config", "show"]);
    assert!(code == 1 && told.contains("cannot be reached"), "{told}");
}

#[test]
fn a_question_without_its_words_is_wrong_usage() {
    for arguments in
        [&["config"][..], &["config", "check"], &["config", "show", "agent.toml"], &["config", "chekc"]]
    {
        let (code, told) = said(Command::new(env!("CARGO_BIN_EXE_shunt-agent")).args(arguments));
        assert_eq!(code, 2, "{arguments:?}: {told}");
    }
}
