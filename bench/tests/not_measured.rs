//! What cannot be measured is named with its reason, the rest is measured, and the exit status says that something is missing.
//! Needs root and `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The generator of streams.
const TOOL: &str = "iperf3";

/// A directory with every program that there is but [`TOOL`].
fn tools() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for folder in std::env::var("PATH").unwrap().split(':') {
        for program in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if program.file_name() != TOOL {
                // The first of a name is the one that counts.
                symlink(program.path(), directory.path().join(program.file_name())).ok();
            }
        }
    }
    directory
}

/// Streams and the programs' figures, with these tools.
fn measure(tools: &Path, out: &Path) -> (Output, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_shunt-bench"))
        .args(["bench", "--quick", "--only", "stream-1,programs", "--out"])
        .arg(out)
        .env("PATH", tools)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(out.join("results.json")).unwrap();
    (output, serde_json::from_str(&text).unwrap())
}

fn assert_names_the_stream_and_goes_on(output: &Output, results: &Value) {
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let missing = results["not_measured"].as_array().unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0]["name"], "stream-1");
    assert!(missing[0]["why"].as_str().unwrap().contains(TOOL), "{missing:?}");
    assert!(!results["facts"].as_array().unwrap().is_empty(), "the other part was measured");
    assert!(printed.contains("stream-1 was not measured"), "{printed}");
}

#[test]
fn a_tool_that_is_missing_costs_its_own_part_only() {
    let (tools, out) = (tools(), tempfile::tempdir().unwrap());
    let (output, results) = measure(tools.path(), out.path());
    assert_names_the_stream_and_goes_on(&output, &results);
    let report = std::fs::read_to_string(out.path().join("report.md")).unwrap();
    assert!(report.contains("## Not measured"), "{report}");
}

#[test]
fn a_tool_that_fails_costs_its_own_part_only() {
    let (tools, out) = (tools(), tempfile::tempdir().unwrap());
    let broken = tools.path().join(TOOL);
    std::fs::write(&broken, "#!/bin/sh\nexit 3\n").unwrap();
    std::fs::set_permissions(&broken, PermissionsExt::from_mode(0o755)).unwrap();
    let (output, results) = measure(tools.path(), out.path());
    assert_names_the_stream_and_goes_on(&output, &results);
}
