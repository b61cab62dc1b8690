//! Builds are compared by turns, and one that is not there is named before anything is measured. Needs root and `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use shunt_lab::Binaries;

fn compare(rounds: &str, directories: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shunt-bench"))
        .args(["builds", "--series", "2", "--rounds", rounds])
        .args(directories)
        .output()
        .unwrap()
}

#[test]
fn a_build_is_compared_with_itself() {
    let plugin = Binaries::find().unwrap().plugin();
    let built = plugin.parent().unwrap();
    let output = compare("2", &[built, built]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed} {}", String::from_utf8_lossy(&output.stderr));
    for verb in ["CNI ADD", "CNI DEL"] {
        let rows = printed.split(verb).nth(1).expect(verb).lines().skip(1);
        let rows: Vec<_> = rows.take_while(|row| !row.trim().is_empty()).collect();
        assert!(rows.len() == 2 && rows[1].contains('×'), "{printed}");
    }
}

#[test]
fn a_build_that_is_not_there_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let output = compare("2", &[empty.path(), empty.path()]);
    assert_eq!(output.status.code(), Some(1));
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(printed.contains(&empty.path().join("shunt").display().to_string()), "{printed}");
}

#[test]
fn one_build_alone_is_no_comparison_and_none_without_rounds() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(compare("0", &[empty.path(), empty.path()]).status.code(), Some(2));
    assert_eq!(compare("2", &[empty.path()]).status.code(), Some(2));
}
