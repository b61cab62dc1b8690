//! Runs promtool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use shunt_lab::{Lacking, skip};

/// The rules in the checkout.
pub(crate) fn rules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/shunt/alerts.yaml")
}

/// None, having said so, where there is none.
pub(crate) fn promtool() -> Option<PathBuf> {
    let found = std::env::var_os("SHUNT_PROMTOOL").map(PathBuf::from);
    if found.is_none() {
        skip(Lacking::Package("prometheus (cargo xtask setup fetches promtool, SHUNT_PROMTOOL names it)"));
    }
    found
}

/// Runs it; what it says, with whether it succeeded.
pub(crate) fn run(promtool: &Path, words: &[&str]) -> (bool, String) {
    let output = Command::new(promtool).args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Runs unit tests over the rules. A JSON text is a YAML text as well.
pub(crate) fn test(promtool: &Path, tests: &[Value]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tests.yaml");
    let content = json!({ "rule_files": [rules()], "evaluation_interval": "1m", "tests": tests });
    fs::write(&file, content.to_string()).unwrap();
    let (passed, said) = run(promtool, &["test", "rules", file.to_str().unwrap()]);
    assert!(passed, "{said}");
}
