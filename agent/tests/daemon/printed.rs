//! What verbs print that need no agent. Of an answer that cannot be printed a full disk is said, and a reader that has heard enough is not.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use shunt_lab::Lab;

/// What a verb that needs no agent says of a good file, where standard output is this.
fn checked(out: impl Into<Stdio>, arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    fs::write(&file, "admission = 'warn'\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    command.args(["config", "check"]).arg(&file).args(arguments).stdout(out).stderr(Stdio::piped());
    let Output { status, stderr, .. } = command.spawn().unwrap().wait_with_output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn an_answer_that_finds_a_full_disk_is_1_with_the_reason_and_a_closed_pipe_is_no_failure() {
    let json: &[&str] = &["--json"];
    for arguments in [&json[..0], json] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, said) = checked(full, arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        assert!(said.contains("cannot be printed") && said.contains("No space left"), "{said}");
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        assert_eq!(checked(writer, arguments), (Some(0), String::new()), "{arguments:?}");
        assert_eq!(checked(File::create("/dev/null").unwrap(), arguments), (Some(0), String::new()));
    }
}

#[test]
fn a_report_on_standard_output_is_an_archive_and_what_is_said_of_it_is_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::write(root.join("agent.toml"), "admission = 'warn'\n").unwrap();
    fs::write(root.join("agent.log"), "serving\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    command.args(["bugreport", "--output", "-", "--json"]);
    for (flag, name) in [
        ("--config", "agent.toml"),
        ("--log", "agent.log"),
        ("--socket", "agent.sock"),
        ("--state-dir", "state"),
        ("--bpffs", "bpffs"),
        ("--bin-dir", "bin"),
    ] {
        command.arg(flag).arg(root.join(name));
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said: Value = serde_json::from_slice(&stderr)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&stderr)));
    assert_eq!(status.code(), Some(3), "no agent answers: {said}");
    assert_eq!((&said["path"], &said["bytes"]), (&Value::Null, &json!(stdout.len())));
    assert!(said["missing"].as_array().unwrap().iter().any(|part| part["file"] == "status.json"), "{said}");
    let mut archive = tar::Archive::new(GzDecoder::new(&stdout[..]));
    let entries = archive.entries().unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
    for name in ["manifest.json", "agent.toml", "agent.log"] {
        assert!(names.contains(&Path::new("shunt-bugreport").join(name)), "{name}: {names:?}");
    }
}

#[test]
fn a_capture_that_no_agent_answers_makes_no_file_and_leaves_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let [new, earlier] = ["new", "earlier"].map(|name| folder.path().join(name));
    fs::write(&earlier, "earlier packets").unwrap();
    let never: &[&str] = &["--reason", "to_host"];
    for (file, arguments, wanted) in [(&new, &never[..0], 1), (&earlier, &never[..0], 1), (&new, never, 2)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
        command.args(["capture", "--socket"]).arg(folder.path().join("agent.sock")).arg("--write").arg(file);
        let done = command.args(arguments).output().unwrap();
        assert_eq!(done.status.code(), Some(wanted), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert!(!new.exists());
    assert_eq!(fs::read(&earlier).unwrap(), b"earlier packets");
}

#[test]
fn what_prepares_a_node_says_in_json_what_it_has_done() {
    let lab = Lab::new().unwrap();
    let say = |arguments: &[&str], flag: &str, path: &Path| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
        let Output { status, stdout, stderr } =
            command.args(arguments).arg("--json").arg(flag).arg(path).output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        serde_json::from_slice(&stdout).unwrap()
    };
    let (plugin, bin_dir) = (lab.root().join("plugin"), lab.root().join("cni-bin"));
    fs::write(&plugin, "a program").unwrap();
    let install = ["install-plugin", "--without-loopback", "--no-note", "--from", plugin.to_str().unwrap()];
    let installed = say(&install, "--bin-dir", &bin_dir);
    assert_eq!(installed["done"][0], json!(bin_dir.join("shunt")), "{installed}");
    let pins = lab.bpf_directory("agent");
    let path = pins.parent().unwrap();
    assert_eq!(say(&["mount-bpffs"], "--bpffs", &pins), json!({ "path": path, "mounted": false }));
}
