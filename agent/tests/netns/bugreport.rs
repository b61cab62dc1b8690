//! The archive of `bugreport`: what is in it with an agent, without one, and with one that never answers; and what is not.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use shunt_lab::{Binaries, Namespace, patience};
use tempfile::TempDir;

use crate::stage::Stage;

/// How long a report may take.
const LIMIT: Duration = Duration::from_secs(5);

const SECRET: &str = "hunter2hunter2";
const FOREIGN: &str = "foreign-rule-of-somebody";

/// Names that are not to be seen where they are hashed.
const CONTAINERS: [&str; 2] =
    ["sandbox-alpha", "0af3b4c5d6e7f80912a3b4c5d6e7f80912a3b4c5d6e7f80912a3b4c5d6e7f809"];
const PODS: [[&str; 2]; 2] = [["team-blue", "shop-7f9c"], ["kube-system", "coredns-x2x"]];
const NODE: &str = "node-seventeen";

/// A node with two pods, a configuration, somebody else's rules, and a folder for reports.
struct Reported {
    folder: TempDir,
    stage: Stage,
}

impl Reported {
    fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("agent.toml");
        let text = format!("# token = \"{SECRET}\"\nadmission = \"warn\"\n");
        fs::write(&config, text).unwrap();
        let mut stage = Stage::empty_with(&["--config", config.to_str().unwrap()]);
        for id in CONTAINERS {
            stage.add(id);
        }
        let reported = Self { folder, stage };
        reported.add_foreign_rules();
        reported
    }

    fn add_foreign_rules(&self) {
        let nft = |text: &str| {
            self.stage.node.namespace().command("nft", &text.split(' ').collect::<Vec<_>>()).unwrap();
        };
        nft("add table inet theirs");
        nft("add chain inet theirs hidden");
        nft(&format!("add rule inet theirs hidden tcp dport 4242 counter comment {FOREIGN}"));
    }

    /// Has the agent know whose pods the containers are, and log a secret.
    fn name_pods(&mut self) {
        self.stage.node.agent_mut().kill().unwrap();
        let attachments = self.stage.node.agent().state().join("attachments");
        for (container, [namespace, name]) in CONTAINERS.into_iter().zip(PODS) {
            let path = attachments.join(format!("pods@{container}@eth0.json"));
            let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            record["port"]["pod"] = json!({ "namespace": namespace, "name": name, "uid": "1b4e28ba-2fa1" });
            fs::write(&path, record.to_string()).unwrap();
        }
        self.stage.node.restart_agent().unwrap();
        let mut log = OpenOptions::new().append(true).open(self.log()).unwrap();
        let gone = "gone-pod-5d5d";
        writeln!(log, "INFO prepared claim=team-blue/{gone} pod=\"{gone}\" Authorization: Bearer {SECRET}")
            .unwrap();
    }

    fn log(&self) -> PathBuf {
        self.stage.node.agent().socket().with_file_name("agent.log")
    }

    fn command(&self, socket: &Path, output: &str, arguments: &[&str]) -> Command {
        let agent = self.stage.node.agent();
        let mut command = Command::new(Binaries::find().unwrap().agent());
        command.args(["bugreport", "--json", "--output"]).arg(self.folder.path().join(output));
        command.arg("--socket").arg(socket).arg("--state-dir").arg(agent.state());
        command.arg("--bpffs").arg(agent.bpffs()).arg("--log").arg(self.log());
        command.arg("--config").arg(self.folder.path().join("agent.toml"));
        command.arg("--bin-dir").arg(self.stage.node.plugins());
        command.env("NODE_NAME", NODE).env("SOME_SECRET", SECRET).args(arguments);
        command
    }

    /// Makes a report: the exit code and the files in it.
    fn report(&self, socket: &Path, output: &str, arguments: &[&str]) -> (i32, BTreeMap<String, String>) {
        let begun = Instant::now();
        let done = run(self.stage.node.namespace(), self.command(socket, output, arguments));
        assert!(begun.elapsed() < patience(LIMIT), "{:?}", begun.elapsed());
        println!("{output}: {:?}", begun.elapsed());
        let said: Value = serde_json::from_slice(&done.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&done.stderr)));
        let path = PathBuf::from(said["path"].as_str().unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        (done.status.code().unwrap(), files(&path))
    }

    fn socket(&self) -> PathBuf {
        self.stage.node.agent().socket().to_path_buf()
    }
}

fn run(namespace: &Namespace, mut command: Command) -> Output {
    namespace.enter(move || command.output()).unwrap().unwrap()
}

fn files(archive: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive).unwrap()));
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (name, text)
    };
    archive.entries().unwrap().map(read).collect()
}

fn json_of(files: &BTreeMap<String, String>, name: &str) -> Value {
    serde_json::from_str(&files[name]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The parts that are missing although they should be there.
fn failed(files: &BTreeMap<String, String>) -> Vec<String> {
    let parts = json_of(files, "manifest.json")["parts"].as_array().unwrap().clone();
    let failed = parts.iter().filter(|part| part["failed"] == true);
    failed.map(|part| part["file"].as_str().unwrap().to_owned()).collect()
}

/// What a part of the agent's is named when it does not answer.
const ASKED: [&str; 8] = [
    "status.json",
    "check.json",
    "ports.json",
    "account.json",
    "drops.json",
    "mappings.json",
    "capacity.json",
    "flows.json",
];

#[test]
fn a_report_has_every_part_and_neither_secrets_nor_rules_of_others() {
    let mut reported = Reported::set();
    reported.name_pods();
    reported.stage.assert_talk(0, 1);
    let (code, files) = reported.report(&reported.socket(), "plain.tar.gz", &[]);
    assert_eq!((code, failed(&files)), (0, Vec::new()), "{}", files["manifest.json"]);
    let text = |name: &str| files[name].as_str();
    assert_eq!(json_of(&files, "ports.json").as_array().unwrap().len(), 2);
    assert_eq!(json_of(&files, "status.json")["attachments"], 2);
    assert!(json_of(&files, "check.json")["consistent"].is_boolean());
    assert!(
        text("ports.json").contains("shop-7f9c") && text("state.json").contains("pods@sandbox-alpha@eth0")
    );
    assert!(text("links.json").contains("cni0") && text("links.json").contains("10.77.0.1/24"));
    assert!(text("programs.json").contains("from_container") && text("programs.json").contains("COUNTERS"));
    assert!(text("agent.log").contains("serving") && text("agent.toml").contains("admission"));
    assert!(text("versions.json").contains(env!("CARGO_PKG_VERSION")));
    let others = &json_of(&files, "nft.json")["others"];
    assert_eq!(others[0], json!({ "family": 1, "table": "theirs", "rules": 1 }));
    for (name, text) in &files {
        assert!(!text.contains(SECRET), "{name}: {text}");
        assert!(!text.contains(FOREIGN) && !text.contains("4242"), "{name}: {text}");
    }
}

#[test]
fn hashed_names_are_nowhere_in_the_archive_and_each_is_one_word() {
    let mut reported = Reported::set();
    reported.name_pods();
    let (code, files) = reported.report(&reported.socket(), "hashed.tar.gz", &["--hash-names"]);
    assert_eq!(code, 0, "{}", files["manifest.json"]);
    let names = CONTAINERS.into_iter().chain(PODS.into_iter().flatten());
    for name in names.chain([NODE, "1b4e28ba-2fa1", "gone-pod-5d5d"]) {
        for (file, text) in &files {
            assert!(!text.contains(name), "{name} is in {file}: {text}");
        }
    }
    let ports = json_of(&files, "ports.json");
    for port in ports.as_array().unwrap() {
        let container = port["container"].as_str().unwrap();
        assert!(container.starts_with("name-"), "{container}");
        for file in ["state.json", "links.json", "agent.log"] {
            assert!(files[file].contains(container), "{container} in {file}");
        }
    }
    assert_ne!(ports[0]["container"], ports[1]["container"]);
    assert_eq!(ports[0]["network"], "pods");
}

#[test]
fn a_report_without_an_agent_or_with_one_that_hangs_has_all_that_needs_none() {
    let mut reported = Reported::set();
    reported.stage.node.agent_mut().kill().unwrap();
    let hung = reported.folder.path().join("hung.sock");
    let _never_accepts = UnixListener::bind(&hung).unwrap();
    for (socket, output) in [(reported.socket(), "dead.tar.gz"), (hung, "hung.tar.gz")] {
        let (code, files) = reported.report(&socket, output, &[]);
        assert_eq!((code, failed(&files)), (3, ASKED.map(str::to_owned).to_vec()), "{output}");
        assert!(files["programs.json"].contains("from_container"), "{output}");
        assert!(
            files["links.json"].contains("sandbox-alpha") && files["state.json"].contains("sandbox-alpha")
        );
        assert!(files["agent.log"].contains("serving") && files.contains_key("kernel.config"), "{output}");
    }
}

#[test]
fn what_is_there_stays_and_a_full_disk_has_no_half_file() {
    let reported = Reported::set();
    let [link, target] = ["link.tar.gz", "target"].map(|name| reported.folder.path().join(name));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let node = reported.stage.node.namespace();
    let refused = run(node, reported.command(&reported.socket(), "link.tar.gz", &[]));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("exists"), "{said}");
    assert!(!target.exists() && link.is_symlink());

    let small = reported.folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let report = reported.command(&reported.socket(), "small/full.tar.gz", &[]);
    // The mount goes with the shell.
    let script = "mount -t tmpfs -o size=8k none \"$0\" && head -c 6000 /dev/zero > \"$0/filler\"; \
                  \"$@\"; echo \"code $?\" >&2; ls -A \"$0\" >&2";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script]).arg(&small).arg(report.get_program()).args(report.get_args());
    let said = String::from_utf8_lossy(&run(node, shell).stderr).into_owned();
    assert!(said.contains("No space left") && said.contains("--output"), "{said}");
    assert!(said.ends_with("code 1\nfiller\n"), "{said}");
}
