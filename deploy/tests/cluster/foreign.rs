//! The image for arm64, and what of its programs needs no kernel: they say in an emulator what this machine's say.
//!
//! Needs `cargo xtask image --arch arm64` and `qemu-aarch64-static`; `cargo xtask setup` fetches neither.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use oci_spec::image::{Arch, Descriptor, ImageConfiguration, ImageIndex, ImageManifest};
use serde_json::json;
use shunt_deploy::{Image, Origin};
use shunt_lab::{Binaries, Lacking, skip};

use crate::archive::files;
use crate::kept::checkout;

const EMULATOR: &str = "qemu-aarch64-static";

/// Where the programs for arm64 are; none, having said so, where they are not built.
fn programs() -> Option<PathBuf> {
    let built = checkout().join("target/aarch64-unknown-linux-musl/release");
    let is_there = ["shunt", "shunt-agent"].iter().all(|name| built.join(name).is_file());
    if !is_there {
        skip(Lacking::Build("the programs for arm64 (cargo xtask image --arch arm64)"));
    }
    is_there.then_some(built)
}

#[test]
fn the_image_for_arm64_says_so_and_is_the_same_each_time() {
    let Some(programs) = programs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let origin = || Origin { version: "1.2.3".to_owned(), revision: None, seconds: 1_700_000_000 };
    let make = |out: &str| {
        let image = Image { programs: &programs, checkout: checkout(), origin: origin() };
        image.make(&directory.path().join(out)).unwrap()
    };
    let (one, two) = (make("one"), make("two"));
    assert_eq!(one.digest, two.digest);
    assert!(fs::read(&one.archive).unwrap() == fs::read(&two.archive).unwrap(), "the archives differ");
    assert!(one.archive.ends_with("shunt-arm64.oci.tar"), "{one:?}");
    let archive = files(File::open(&one.archive).unwrap());
    let blob = |descriptor: &Descriptor| {
        &archive[&format!("blobs/sha256/{}", descriptor.as_digest_sha256().unwrap())].1[..]
    };
    let index = ImageIndex::from_reader(&archive["index.json"].1[..]).unwrap();
    let [named] = index.manifests().as_slice() else { panic!("{index:?}") };
    assert_eq!(*named.platform().as_ref().unwrap().architecture(), Arch::ARM64);
    let manifest = ImageManifest::from_reader(blob(named)).unwrap();
    assert_eq!(
        *ImageConfiguration::from_reader(blob(manifest.config())).unwrap().architecture(),
        Arch::ARM64
    );
}

/// What this machine's program and the other one, emulated, say of the same.
fn both(name: &str, arguments: &[&OsStr], environment: &[(&str, &str)], input: &str) -> Option<[Output; 2]> {
    let foreign = programs()?;
    let has_emulator = Command::new(EMULATOR).arg("--version").output().is_ok();
    if !has_emulator {
        skip(Lacking::Build("an emulator for arm64 (qemu-user-static)"));
        return None;
    }
    let host = Binaries::find().unwrap();
    let host = if name == "shunt" { host.plugin() } else { host.agent() };
    let run = |mut command: Command| {
        command.args(arguments).envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Who reads nothing has closed it.
        let _unread = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    };
    let mut emulated = Command::new(EMULATOR);
    emulated.arg(foreign.join(name));
    Some([run(Command::new(host)), run(emulated)])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_plugin_for_arm64_answers_what_this_machines_does() {
    let config = json!({ "cniVersion": "1.1.0", "name": "pods", "type": "shunt", "bridge": "cni0",
        "ipam": { "type": "shunt-ipam", "ranges": [[{ "subnet": "10.244.1.0/33" }]] } });
    let attached = [
        ("CNI_CONTAINERID", "one"),
        ("CNI_NETNS", "/nonexistent"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_PATH", "/nonexistent"),
    ];
    for (verb, input) in [
        ("VERSION", json!({ "cniVersion": "1.0.0" }).to_string()),
        ("VERSION", "{".to_owned()),
        ("ADD", config.to_string()),
        ("ADD", json!({ "cniVersion": "9.9.9", "name": "pods", "type": "shunt" }).to_string()),
        ("NOTHING", config.to_string()),
    ] {
        let environment = [&[("CNI_COMMAND", verb)], &attached[..]].concat();
        let Some([ours, theirs]) = both("shunt", &[], &environment, &input) else { return };
        assert_eq!(text(&theirs.stdout), text(&ours.stdout), "{verb} {input}");
        assert_eq!(theirs.status.code(), ours.status.code(), "{verb} {input}: {}", text(&theirs.stderr));
        assert!(!ours.stdout.is_empty(), "{verb} {input}");
    }
}

#[test]
fn the_agent_for_arm64_reads_what_this_machines_does() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("agent.toml");
    fs::write(&config, "max_flowz = 7\n").unwrap();
    let named: [&OsStr; 3] = ["run".as_ref(), "--config".as_ref(), config.as_os_str()];
    // A BPF file system could be mounted on the parent, which is not there.
    let nothing = directory.path().join("none/shunt");
    let state: &Path = &nothing;
    let upgrade: [&OsStr; 7] = ["upgrade", "--check", "--json", "--state-dir", "", "--bpffs", ""]
        .map(|word| if word.is_empty() { state.as_os_str() } else { OsStr::new(word) });
    let version = [OsStr::new("--version")];
    for (arguments, code) in [(&version[..], 0), (&named[..], 2), (&upgrade[..], 0)] {
        let Some([ours, theirs]) = both("shunt-agent", arguments, &[], "") else { return };
        assert_eq!(ours.status.code(), Some(code), "{arguments:?}: {}", text(&ours.stderr));
        assert_eq!(theirs.status.code(), Some(code), "{arguments:?}: {}", text(&theirs.stderr));
        assert_eq!(text(&theirs.stdout), text(&ours.stdout));
    }
    let Some([ours, theirs]) = both("shunt-agent", &named, &[], "") else { return };
    for said in [ours, theirs] {
        let said = text(&[said.stdout, said.stderr].concat());
        assert!(said.contains("max_flowz") && said.contains("max_flows"), "{said}");
    }
}
