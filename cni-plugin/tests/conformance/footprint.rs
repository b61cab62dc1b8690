//! One call is one process, which runs no other program, has no thread left in the end, and needs little.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde_json::{Value, json};

use crate::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(30);

/// What /proc tells of a process that has done everything but say so.
#[derive(Debug)]
struct Footprint {
    /// Peak resident set in KiB.
    peak: u64,
    threads: u64,
    /// Its children's page faults: 0 unless it had one and waited for it.
    children: u64,
    /// Those that it did not wait for.
    orphans: String,
}

impl Footprint {
    /// Looks at `process` once it waits for its reader.
    fn of(process: u32) -> Self {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let begun = Instant::now();
        while !read("wchan").contains("pipe_write") {
            assert!(begun.elapsed() < PATIENCE, "{}", read("status"));
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = read("status");
        let number = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        // Behind the name in parentheses: fields 3, 4 and so on, of which 11 and 13 are the children's (proc_pid_stat(5)).
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        Self {
            peak: number("VmHWM:"),
            threads: number("Threads:"),
            children: [8, 10].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum(),
            orphans: read(&format!("task/{process}/children")),
        }
    }
}

/// A pipe that takes nothing more until it is read.
fn full_pipe() -> (File, File) {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut writer = File::from(writer);
    while writer.write(&[b' '; 4096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (File::from(reader), writer)
}

/// Calls the plugin, and looks at it before it ends.
fn call(runtime: &Runtime, program: &Path, verb: &str, config: &Value) -> (Footprint, Value) {
    let (mut reader, writer) = full_pipe();
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("SHUNT_AGENT_SOCKET", runtime.agent.socket())
        .envs(runtime.environment(verb, "c1"));
    command.stdin(Stdio::piped()).stdout(writer);
    let mut child = runtime.node.enter(|| command.spawn().unwrap()).unwrap();
    drop(command);
    child.stdin.take().unwrap().write_all(config.to_string().as_bytes()).unwrap();
    let footprint = Footprint::of(child.id());
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    (footprint, serde_json::from_str(&said).unwrap())
}

#[test]
#[allow(clippy::print_stdout, reason = "its figure")]
fn an_add_is_one_process_and_needs_little_memory() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    for (key, value) in [
        ("ipMasq", json!(true)),
        ("portIsolation", json!(true)),
        ("ingressRate", json!(8_000_000)),
        ("ingressBurst", json!(80_000)),
        ("runtimeConfig", json!({ "portMappings": [{ "hostPort": 80, "containerPort": 80 }] })),
    ] {
        network[key] = value;
    }
    let (found, said) = call(&runtime, Path::new(env!("CARGO_BIN_EXE_shunt")), "ADD", &network);
    assert_eq!(said["ips"][0]["address"], "10.77.0.2/24", "{said}");
    assert_eq!((found.threads, found.children, found.orphans.as_str()), (1, 0, ""), "{found:?}");
    println!("peak resident set of an ADD: {} KiB", found.peak);
    // Most of it are the file's own pages, and a build for debugging has ten times as many as what is installed, which may have 6 MiB.
    let bound = if cfg!(debug_assertions) { 12 << 10 } else { 6 << 10 };
    assert!(found.peak <= bound, "{found:?}");
    runtime.call("DEL", "c1", &network).ok();
}
