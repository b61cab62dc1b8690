//! Answers that cannot be printed: a disk that is full is said, a reader that has heard enough is not.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::process::{Command, Output, Stdio};

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
    for arguments in [&[][..], &["--json"][..]] {
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
