//! The reference plugin, or another one in its place, run as a program.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::network::{NAME, Network};

/// From Debian's package `containernetworking-plugins`.
pub(crate) const PLUGIN: &str = "/usr/lib/cni/host-local";

/// Runs a verb on the network; the addresses of the answer, empty for verbs without one, or the error's message.
pub(crate) fn run(
    network: &Network,
    verb: &str,
    container: &str,
    ifname: &str,
    requested: Option<&str>,
) -> Result<Vec<String>, String> {
    run_plugin(PLUGIN, network.ipam(), verb, container, ifname, requested).map(|result| addresses(&result))
}

/// ADD; the whole result.
pub(crate) fn add(network: &Network, container: &str) -> Result<Value, String> {
    run_plugin(PLUGIN, network.ipam(), "ADD", container, "eth0", None)
}

/// Runs a verb of any IPAM plugin; what it prints, `null` for nothing, or the error's message.
pub(crate) fn run_plugin(
    plugin: &str,
    ipam: &Value,
    verb: &str,
    container: &str,
    ifname: &str,
    requested: Option<&str>,
) -> Result<Value, String> {
    run_version(plugin, "1.0.0", ipam, verb, container, ifname, requested)
}

/// [`run_plugin`] with a configuration of another version.
pub(crate) fn run_version(
    plugin: &str,
    version: &str,
    ipam: &Value,
    verb: &str,
    container: &str,
    ifname: &str,
    requested: Option<&str>,
) -> Result<Value, String> {
    let config = json!({"cniVersion": version, "name": NAME, "type": "test", "ipam": ipam});
    let mut child = Command::new("timeout")
        .args(["60", plugin])
        .env_clear()
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", container)
        .env("CNI_IFNAME", ifname)
        .env("CNI_NETNS", "/nowhere")
        .env("CNI_PATH", "/usr/lib/cni")
        .env("CNI_ARGS", requested.map(|address| format!("IP={address}")).unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(config.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = match output.stdout.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&output.stdout).unwrap(),
    };
    match (output.status.code(), answer["msg"].as_str()) {
        (Some(0), _) => Ok(answer),
        (_, Some(message)) => Err(message.to_owned()),
        (code, None) => {
            panic!("{plugin} (package containernetworking-plugins) ended with {code:?} and no error")
        }
    }
}

fn addresses(result: &Value) -> Vec<String> {
    let line =
        |ip: &Value| format!("{} via {}", ip["address"].as_str().unwrap(), ip["gateway"].as_str().unwrap());
    result["ips"].as_array().map(|ips| ips.iter().map(line).collect()).unwrap_or_default()
}
