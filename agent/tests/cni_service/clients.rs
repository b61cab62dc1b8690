//! The clients of `docs/api.md`, run as they stand there, where there is what runs them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use shunt_lab::{Lacking, skip};

use crate::world::World;

/// Names a Python that has gRPC, where the one in `PATH` has none.
const PYTHON: &str = "SHUNT_PYTHON_GRPC";

const MESSAGES: &str = "shunt/cni/v1/cni.proto";

fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The one block of a language in the document.
fn code(language: &str) -> String {
    let page = fs::read_to_string(checkout("docs/api.md")).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn successful(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    assert!(status.success(), "{command:?}: {said}");
    said
}

/// Has a client attach a container and delete it, and then one that cannot be attached.
fn try_out(client: &dyn Fn() -> Command, address: &dyn Fn(&str) -> String) {
    let mut world = World::start();
    let list = world.list(&[world.shunt()]);
    let file = world.lab.root().join("pods.conflist");
    fs::write(&file, list.to_string()).unwrap();
    let netns = world.container("one").sandbox.netns;
    let run = |netns: &str| {
        let mut command = client();
        command.arg(world.socket()).arg(&file).args(["one", netns]);
        command
    };
    let said = successful(&mut run(&netns));
    assert!(address(said.trim()).starts_with("10.78."), "{said}");
    world.assert_empty();
    let refused = run("/proc/self/ns/net").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("CNI error 8: "), "{said}");
    world.assert_empty();
}

/// A Python that has gRPC.
fn python() -> Option<OsString> {
    let named = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
    let has_it = Command::new(&named).args(["-c", "import grpc_tools.protoc, grpc_status"]).output();
    has_it.is_ok_and(|output| output.status.success()).then_some(named)
}

#[test]
fn the_client_in_python_attaches_and_deletes() {
    let Some(python) = python() else {
        return skip(Lacking::Build("Python's grpcio, grpcio-tools and grpcio-status (SHUNT_PYTHON_GRPC)"));
    };
    let folder = tempfile::tempdir().unwrap();
    let mut protoc = Command::new(&python);
    protoc.args(["-m", "grpc_tools.protoc", "--python_out=.", "--grpc_python_out=.", "-I"]);
    successful(protoc.arg(checkout("agent/cni/proto")).arg(MESSAGES).current_dir(folder.path()));
    fs::write(folder.path().join("client.py"), code("python")).unwrap();
    let client = || {
        let mut command = Command::new(&python);
        command.arg(folder.path().join("client.py"));
        command
    };
    try_out(&client, &str::to_owned);
}

/// Debian's packages of Go, of which none is a module.
const GOPATH: &str = "/usr/share/gocode";

#[test]
fn the_client_in_go_attaches_and_deletes() {
    let has_grpc = Path::new(GOPATH).join("src/google.golang.org/grpc/credentials/local").is_dir();
    if !has_grpc || Command::new("protoc-gen-go-grpc").arg("--version").output().is_err() {
        return skip(Lacking::Build("golang-google-grpc-dev with protoc-gen-go-1-3 and protoc-gen-go-grpc"));
    }
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("src/client");
    fs::create_dir_all(&module).unwrap();
    let mut protoc = Command::new("protoc");
    protoc.args(["--go_out=paths=source_relative:.", "--go-grpc_out=paths=source_relative:.", "-I"]);
    successful(protoc.arg(checkout("agent/cni/proto")).arg(MESSAGES).current_dir(&module));
    fs::write(module.join("main.go"), code("go")).unwrap();
    let mut go = Command::new("/usr/bin/go");
    go.args(["build", "-o", "client", "."]).current_dir(&module).env("GO111MODULE", "off");
    go.env("GOPATH", format!("{}:{GOPATH}", folder.path().display()));
    successful(go.env("GOCACHE", folder.path().join("cache")));
    let address = |said: &str| {
        let result: Value = serde_json::from_str(said).unwrap();
        result["ips"][0]["address"].as_str().unwrap().to_owned()
    };
    try_out(&|| Command::new(module.join("client")), &address);
}
