//! Standard streams that are closed, or that nobody reads.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::runtime::{Outcome, Runtime};

/// Runs a line of the shell as the plugin; in it `$0` is the plugin.
fn call(runtime: &Runtime, line: &str, verb: &str, input: &[u8]) -> Outcome {
    let script = runtime.lab.root().join("plugin.sh");
    let text = format!("#!/bin/sh\nexec sh -c '{line}' {}\n", env!("CARGO_BIN_EXE_shunt"));
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o700)).unwrap();
    runtime.exec(&script, &runtime.environment(verb, "c1"), input)
}

#[test]
fn what_is_opened_first_is_not_taken_for_a_stream_that_was_closed() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let network = runtime.network("streams");
    runtime.call("INIT", "c1", &network).ok();
    let before = runtime.inventory();
    let config = network.to_string();
    let added = call(&runtime, "exec \"$0\" >&- 2>&-", "ADD", config.as_bytes());
    assert!(added.success, "{added:?}");
    runtime.agent.with(|books| assert_eq!(books.ports.len(), 1));
    let deleted = call(&runtime, "exec \"$0\" >&- 2>&-", "DEL", config.as_bytes());
    assert!(deleted.success, "{deleted:?}");
    runtime.node.command("ip", &["address", "flush", "dev", "br0"]).unwrap();
    runtime.assert_nothing_new(&before);

    let (code, text) = call(&runtime, "exec \"$0\" <&-", "ADD", b"").error();
    assert_eq!(code, 6, "no configuration is none that can be read: {text}");
}

#[test]
fn an_answer_that_nobody_reads_is_a_failure_and_not_a_signal() {
    let runtime = Runtime::new();
    let line = "{ { sleep 0.3; \"$0\"; echo \"it said $?\" >&2; } | true; }";
    let said = call(&runtime, line, "VERSION", b"");
    assert!(said.complaint.contains("it said 1"), "{said:?}");
}
