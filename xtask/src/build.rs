//! `cargo xtask build`: the kernel programs first, for the agent carries them inside it; then the binaries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result};
use clap::Args;

use crate::setup::{self, Processor, StaticTarget, Tools};
use crate::without_debug::without_debug;
use crate::{process, workspace};

const TARGET: &str = "bpfel-unknown-none";
const PROFILE: &str = "bpf";

/// The plugin, which runs once for each change of a container.
const PLUGIN: &str = "shunt";

/// The node's agent, which runs for long.
const AGENT: &str = "shunt-agent";

/// What runs rarely, and on the machine that has built it.
const BENCHMARK: &str = "shunt-bench";

/// What to build.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The kernel programs only: what the verifier, parity and the stepper look at
    #[arg(long)]
    only_programs: bool,
}

pub(crate) fn chosen(arguments: &Arguments) -> Result<()> {
    if arguments.only_programs {
        return programs(workspace::root(), &setup::for_build()?, process::run);
    }
    run()
}

pub(crate) fn run() -> Result<()> {
    let tools = setup::for_build()?;
    programs(workspace::root(), &tools, process::run)?;
    process::run(workspace::cargo().args(["build", "--release", "--package", BENCHMARK]))?;
    agent()?;
    plugin()
}

/// The programs that go to a node, for a processor: where they lie is said.
pub(crate) fn shipped(wanted: Option<Processor>) -> Result<PathBuf> {
    let processor = wanted.or_else(Processor::of_host);
    let processor = processor.context("nothing is shipped for this processor: say --arch")?;
    programs(workspace::root(), &setup::for_build()?, process::run)?;
    let target = setup::static_target(processor)?;
    static_agent(&target)?;
    static_plugin(&target)?;
    Ok(workspace::target().join(target.triple).join("release"))
}

/// The agent is linked statically, with musl, where that and a C compiler for it can be had: one file for every distribution, and for an
/// image with nothing else in it.
fn agent() -> Result<()> {
    let target =
        Processor::of_host().context("nothing is shipped for this processor").and_then(setup::static_target);
    match target {
        Ok(target) => {
            static_agent(&target)?;
            place(&workspace::static_binary(target.triple, AGENT), &workspace::release_binary(AGENT))
        }
        Err(error) => {
            println!("{AGENT} is linked with glibc, and runs where this or a newer one is: {error:#}");
            process::run(workspace::cargo().args(["build", "--release", "--package", AGENT]))
        }
    }
}

fn static_agent(target: &StaticTarget) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--package", AGENT]);
    process::run(reproducible(&mut cargo, target))
}

/// Builds for a static target. Of where the sources are nothing is left in the program: two checkouts give the same.
fn reproducible<'a>(cargo: &'a mut Command, target: &StaticTarget) -> &'a mut Command {
    let registry = workspace::registry();
    let remapped = [(workspace::root(), "."), (&registry, "registry")];
    let flags = remapped.map(|(from, to)| format!("'--remap-path-prefix={}={to}'", from.display()));
    let triple = target.triple;
    cargo.args(["--target", triple, "--config", &format!("target.{triple}.rustflags=[{}]", flags.join(","))]);
    if let Some(compiler) = target.compiler {
        cargo.args(["--config", &format!("target.{triple}.linker='{compiler}'")]);
        cargo.env(format!("CC_{}", triple.replace('-', "_")), compiler);
    }
    cargo
}

/// The plugin is linked statically, with musl where it can be had. It runs for a few milliseconds, and glibc spends one of them
/// before `main` asking the processor what it is, an instruction that every hypervisor intercepts: from exec to exit an empty
/// program takes 1.2 ms with glibc, linked statically 1.0, and 0.18 with musl.
fn plugin() -> Result<()> {
    if let Some(triple) = setup::static_target_of_host() {
        static_plugin(&StaticTarget { triple, compiler: None })?;
        return place(&workspace::static_binary(triple, PLUGIN), &workspace::release_binary(PLUGIN));
    }
    let mut cargo = workspace::cargo();
    cargo.args(["rustc", "--release", "--package", PLUGIN, "--bin", PLUGIN]);
    if has_static_libc() {
        println!("{PLUGIN} is linked with glibc: it starts later");
        cargo.args(["--", "-Ctarget-feature=+crt-static"]);
    } else {
        println!(
            "{PLUGIN} is linked dynamically with glibc: it starts later, and the C compiler finds no libc.a"
        );
    }
    process::run(&mut cargo)
}

/// Of a call's time a good part is the kernel's, which brings the program's pages as they are first used: the fewer the better.
/// Nothing else is built for this target with these settings, so nobody waits for it.
fn static_plugin(target: &StaticTarget) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["rustc", "--release", "--package", PLUGIN, "--bin", PLUGIN]);
    for setting in ["lto='fat'", "codegen-units=1", "opt-level='s'", "panic='abort'"] {
        cargo.args(["--config", &format!("profile.release.{setting}")]);
    }
    process::run(reproducible(&mut cargo, target))
}

fn has_static_libc() -> bool {
    let found = Command::new("cc").arg("-print-file-name=libc.a").output();
    // Without a path in front the name is only given back.
    found.is_ok_and(|output| output.stdout.contains(&b'/'))
}

/// The objects of a checkout, and the features of each: the programs that packets meet, those that are attached while somebody watches,
/// and those that also write their decisions to a map, for tests.
const OBJECTS: [(&str, &str); 3] =
    [("shunt.o", ""), ("shunt-watched.o", "watched"), ("shunt-decisions.o", "decisions")];

/// Builds every object of a checkout. `run` is what runs cargo: aloud or quietly.
pub(crate) fn programs(root: &Path, tools: &Tools, run: process::Run) -> Result<()> {
    OBJECTS.into_iter().try_for_each(|(name, features)| {
        let mut cargo = cargo_for_bpf(root, tools);
        object(cargo.args(["--features", features]), root, run, name)
    })
}

fn object(cargo: &mut Command, root: &Path, run: process::Run, name: &str) -> Result<()> {
    // A target directory of its own: the compiler is another one, and cargo would start afresh at each change. Never
    // CARGO_TARGET_DIR: the agent's build script looks for the object in the checkout.
    let target = root.join("target");
    // One for each object: two builds at a time would take each other's.
    let scratch = target.join("bpf-build").join(name);
    run(cargo.arg("--target-dir").arg(&scratch)).with_context(|| format!("cannot build {name}"))?;
    let built = scratch.join(TARGET).join(PROFILE).join("programs");
    let whole = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    let object = without_debug(&whole).with_context(|| built.display().to_string())?;
    replace(&target.join("bpf").join(name), &object, |unfinished| fs::write(unfinished, &object))
}

fn cargo_for_bpf(root: &Path, tools: &Tools) -> Command {
    let flags = [
        "-Cdebuginfo=2".to_owned(),
        format!("-Clinker={}", tools.linker.display()),
        "-Clink-arg=--btf".to_owned(),
        // With that order LLVM calls a function for every few bytes that it sets to zero: a loop in the packet's way, and a
        // frame more on the stack, which Linux 6.1 rounds up to 32 bytes.
        "-Clink-arg=--disable-expand-memcpy-in-order".to_owned(),
        // BTF carries source paths: those of the checkout, not of the machine.
        format!("--remap-path-prefix={}=.", root.display()),
        format!("--remap-path-prefix={}=registry", workspace::registry().display()),
    ];
    let mut cargo = workspace::cargo();
    cargo
        .current_dir(root)
        .args(["build", "--package", "programs", "--profile", PROFILE, "--target", TARGET])
        .args(tools.toolchain.cargo_arguments())
        .env("RUSTC", &tools.toolchain.rustc)
        .env("LD_LIBRARY_PATH", &tools.toolchain.libraries)
        .env("RUSTC_BOOTSTRAP", "1")
        // This form takes a path with spaces, and wins over any flags meant for the host.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env_remove("RUSTC_WRAPPER");
    cargo
}

/// Copies what was built only when it has changed: a new timestamp of the object would make cargo build the agent again.
fn place(built: &Path, wanted: &Path) -> Result<()> {
    let content = fs::read(built).with_context(|| format!("cannot read {}", built.display()))?;
    replace(wanted, &content, |unfinished| fs::copy(built, unfinished).map(drop))
}

/// Puts `content` at `wanted`, where something else is: by `write`, and at once.
fn replace(wanted: &Path, content: &[u8], write: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    if fs::read(wanted).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let directory = wanted.parent().context("what is built lies in a directory")?;
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let unfinished = wanted.with_extension("new");
    write(&unfinished).with_context(|| format!("cannot write {}", unfinished.display()))?;
    fs::rename(&unfinished, wanted).with_context(|| format!("cannot write {}", wanted.display()))
}
