//! Several calls at a time in one process, each with an environment of its own.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;
use shunt::{Reply, Setting};

/// Puts a plugin there that `portmap` has replaced. It writes what it was asked into a file of the container's name.
fn keep_a_plugin(folder: &Path) {
    let path = folder.join("portmap.orig");
    let said = "$CNI_COMMAND $CNI_IFNAME $CNI_ARGS ${CNI_NETNS-none} $TRACEPARENT ${TRACESTATE-none}";
    let script = format!("#!/bin/sh\necho \"{said}\" > {}/$CNI_CONTAINERID\n", folder.display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn another_plugin_is_given_the_environment_of_its_call() {
    let folder = tempfile::tempdir().unwrap();
    keep_a_plugin(folder.path());
    let config = json!({
        "cniVersion": "1.1.0", "name": "net", "type": "portmap", "agentSocket": folder.path().join("none"),
        "runtimeConfig": { "portMappings": [{ "hostPort": 80, "containerPort": 80, "protocol": "tcp" }] }
    })
    .to_string();
    let del = &|number: usize| {
        let environment = |name: &str| {
            let value: OsString = match name {
                "CNI_COMMAND" => "DEL".into(),
                "CNI_CONTAINERID" => format!("c{number}").into(),
                "CNI_IFNAME" => format!("eth{number}").into(),
                "CNI_ARGS" => format!("IgnoreUnknown=1;N={number}").into(),
                "CNI_PATH" => folder.path().into(),
                "TRACEPARENT" => format!("trace-{number}").into(),
                _ => return None,
            };
            Some(value)
        };
        shunt::run(Path::new("portmap"), environment, config.as_bytes())
    };
    let replies: Vec<Reply> = thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|number| scope.spawn(move || del(number))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for (number, reply) in replies.iter().enumerate() {
        assert!(matches!(reply, Reply::Done(text) if text.is_empty()), "{reply:?}");
        let asked = fs::read_to_string(folder.path().join(format!("c{number}"))).unwrap();
        assert_eq!(asked, format!("DEL eth{number} IgnoreUnknown=1;N={number} none trace-{number} none\n"));
    }
}

/// A verb for a container of no namespace.
fn ask(setting: &Setting, verb: &str, path: &Path, config: &[u8]) -> Reply {
    let environment = |name: &str| match name {
        "CNI_COMMAND" => Some(verb.into()),
        "CNI_CONTAINERID" => Some("c".into()),
        "CNI_IFNAME" => Some("eth0".into()),
        "CNI_PATH" => Some(path.into()),
        _ => None,
    };
    shunt::run_in(setting, Path::new("shunt"), environment, config)
}

#[test]
fn the_agent_is_the_process_s_choice() {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({ "cniVersion": "1.1.0", "name": "net", "type": "shunt", "agentSocket": "/of/the/configuration" });
    let config = config.to_string();
    for (socket, named) in
        [(None, "/of/the/configuration"), (Some("/of/the/process".into()), "/of/the/process")]
    {
        let setting = Setting { agent_socket: socket, ..Setting::default() };
        let reply = ask(&setting, "STATUS", folder.path(), config.as_bytes());
        assert!(matches!(&reply, Reply::Failed(text) if text.contains(named)), "{reply:?}");
    }
}

#[test]
fn a_program_without_a_limit_of_its_own_has_the_process_s() {
    let folder = tempfile::tempdir().unwrap();
    let slow = folder.path().join("slow");
    fs::write(&slow, "#!/bin/sh\nexec sleep 60\n").unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let config = json!({
        "cniVersion": "1.1.0", "name": "net", "type": "shunt", "agentSocket": folder.path().join("none"), "ipam": { "type": "slow" }
    })
    .to_string();
    let setting = Setting { program_limit: Some(Duration::from_millis(50)), ..Setting::default() };
    let reply = ask(&setting, "DEL", folder.path(), config.as_bytes());
    assert!(matches!(&reply, Reply::Failed(text) if text.contains("has not ended after 50ms")), "{reply:?}");
}

#[test]
fn a_configuration_that_is_too_long_is_refused_and_not_cut() {
    let folder = tempfile::tempdir().unwrap();
    let mut config =
        json!({ "cniVersion": "1.1.0", "name": "net", "type": "shunt" }).to_string().into_bytes();
    config.resize((16 << 20) + 1, b' ');
    let reply = ask(&Setting::default(), "VALIDATE", folder.path(), &config);
    assert!(
        matches!(&reply, Reply::Failed(text) if text.contains("has more than 16777216 bytes")),
        "{reply:?}"
    );
    config.pop();
    let reply = ask(&Setting::default(), "VALIDATE", folder.path(), &config);
    assert!(matches!(&reply, Reply::Done(_)), "{reply:?}");
}
