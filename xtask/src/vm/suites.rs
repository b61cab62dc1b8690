//! The test binaries that run in the guest, as cargo built them on the host: paths are the same there.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, workspace};

/// What depends on the kernel below, the quick ones first, and what each wants to be told besides the filter.
const SUITES: [(&str, &[&str]); 2] = [
    // Its figures differ from kernel to kernel.
    ("verifier", &["--show-output"]),
    ("parity", &[]),
];

/// A test binary, and the package's folder in which cargo would start it.
pub(super) struct Suite {
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
    /// For the test harness.
    pub(super) options: &'static [&'static str],
}

pub(super) fn build() -> Result<Vec<Suite>> {
    let mut cargo = workspace::cargo();
    cargo.args([
        "test",
        "--no-run",
        "--package",
        "shunt-agent",
        "--message-format",
        "json-render-diagnostics",
    ]);
    for (suite, _) in SUITES {
        cargo.args(["--test", suite]);
    }
    let messages = messages(&mut cargo)?;
    SUITES.iter().map(|(name, options)| find(name, options, &messages)).collect()
}

fn messages(cargo: &mut Command) -> Result<Vec<Value>> {
    let output = process::output(cargo)?;
    output.lines().map(|line| serde_json::from_str(line).context("cargo's messages are JSON")).collect()
}

fn find(name: &str, options: &'static [&'static str], messages: &[Value]) -> Result<Suite> {
    for message in messages.iter().filter(|message| message["target"]["name"] == name) {
        let Some(binary) = message["executable"].as_str() else { continue };
        let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().context("a manifest lies in a folder")?.to_path_buf();
        return Ok(Suite { binary: binary.into(), folder, options });
    }
    bail!("cargo has built no test binary {name}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_binary_is_the_message_with_an_executable() {
        let library =
            json!({"target": {"name": "parity"}, "executable": null, "manifest_path": "/a/Cargo.toml"});
        let test =
            json!({"target": {"name": "parity"}, "executable": "/t/p", "manifest_path": "/a/Cargo.toml"});
        let suite = find("parity", &[], &[library.clone(), test]).unwrap();
        assert_eq!((suite.binary, suite.folder), ("/t/p".into(), "/a".into()));
        assert!(find("parity", &[], &[library]).is_err());
    }
}
