//! Demo and benchmark leave nothing behind when they are interrupted, and what a killed one leaves is swept away by the next
//! lab.
//! Needs root and `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use shunt_lab::{Lab, Machine, run};

/// How long a run may take to clean up.
const PATIENCE: Duration = Duration::from_secs(20);

/// A demo or a benchmark that runs, killed if the test ends before it.
struct Running {
    child: Child,
    lab: PathBuf,
}

impl Running {
    /// Starts it and reads what it prints until `line` appears.
    fn until(arguments: &[&str], line: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_shunt-bench");
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lab = PathBuf::from(format!("/run/shunt-lab-{}-0", child.id()));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut seen = String::new();
        while !seen.contains(line) {
            let read = output.read_line(&mut seen).unwrap();
            assert!(read > 0, "{arguments:?} ended before {line:?}:\n{seen}");
        }
        // Whatever it prints from here on must have somewhere to go.
        std::thread::spawn(move || drop(output.read_to_string(&mut seen)));
        Self { child, lab }
    }

    fn signal(&self, signal: &str) {
        run("kill", &[signal, &self.child.id().to_string()]).unwrap();
    }

    fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    for moment in ["A node", "They talk", "What that gains"] {
        let machine = Machine::now();
        let mut demo = Running::until(&["demo"], moment);
        demo.signal("-INT");
        assert_eq!(demo.wait().code(), Some(130), "interrupted at {moment:?}");
        assert_eq!(machine.leaks(&demo.lab), Vec::<String>::new(), "interrupted at {moment:?}");
    }
}

#[test]
fn an_interrupted_benchmark_leaves_nothing_behind() {
    let out = tempfile::tempdir().unwrap();
    let directory = out.path().to_str().unwrap();
    let machine = Machine::now();
    let mut bench =
        Running::until(&["bench", "--quick", "--only", "rr", "--out", directory], "shunt, measured");
    // Somewhere in its topologies, or in its rounds.
    std::thread::sleep(Duration::from_secs(2));
    bench.signal("-INT");
    assert_eq!(bench.wait().code(), Some(130));
    assert_eq!(machine.leaks(&bench.lab), Vec::<String>::new());
}

#[test]
fn what_a_killed_demo_left_is_swept_away_by_the_next_lab() {
    let machine = Machine::now();
    let mut demo = Running::until(&["demo"], "They talk");
    demo.signal("-KILL");
    demo.wait();
    assert!(demo.lab.exists(), "a killed process cannot have cleaned up");
    drop(Lab::new().unwrap());
    let begun = Instant::now();
    while !machine.leaks(&demo.lab).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "still there: {:?}", machine.leaks(&demo.lab));
        std::thread::sleep(Duration::from_millis(10));
    }
}
