//! `cargo xtask setup`: finds what is needed, installs what is missing, and says what it did.
//!
//! What was found is remembered in the cache; later runs only look whether it is still there, which takes no process
//! and about a millisecond. Every other verb comes through here first, and asks only for what it needs itself.

pub(crate) mod apt;
mod by_hand;
pub(crate) mod cache;
mod compiler;
mod debian_root;
mod debian_toolchain;
mod deny;
mod helm;
mod linker;
mod lookup;
mod netavark;
mod packages;
mod promtool;
mod python_grpc;
mod stamp;
mod static_target;
mod toolchain;
mod tools;

use std::path::PathBuf;

use anyhow::{Context, Result};

pub(crate) use static_target::{Processor, StaticTarget};
pub(crate) use tools::Tools;

/// `cargo xtask setup` itself: everything that build, test, vm, demo and bench need. `kernels` fetches those of `vm`.
pub(crate) fn run(kernels: impl FnOnce() -> Result<Vec<String>>) -> Result<()> {
    let tools = for_build()?;
    for_tests()?;
    for_vm()?;
    let target = Processor::of_host().context("no static target").and_then(static_target);
    let linked = target.map_or("the host's C library", |target| target.triple);
    let helm = for_chart();
    let promtool = for_alerts();
    let netavark = for_netavark();
    let python = for_clients();
    let root = for_packages();
    let kernels = kernels();
    println!("BPF toolchain  {}", tools.toolchain);
    println!("bpf-linker     {} {}", linker::VERSION, tools.linker.display());
    println!("linked for     {linked}");
    match helm {
        Ok(path) => println!("helm           {} {}", helm::VERSION, path.display()),
        // Nothing but the chart's tests needs it, and they say so.
        Err(error) => println!("helm           {error:#}"),
    }
    match promtool {
        Ok(path) => println!("promtool       {}", path.display()),
        // Nothing but the alert rules' tests needs it, and they say so.
        Err(error) => println!("promtool       {error:#}"),
    }
    match netavark {
        Ok(path) => println!("netavark       {} {}", netavark::VERSION, path.display()),
        // Nothing but its own suite needs it, and that says so.
        Err(error) => println!("netavark       {error:#}"),
    }
    match python {
        Ok(path) => println!("gRPC in Python {} {}", python_grpc::VERSION, path.display()),
        // Nothing but a client's test needs it, and it says so.
        Err(error) => println!("gRPC in Python {error:#}"),
    }
    match root {
        Ok(path) => println!("Debian root    {}", path.display()),
        // Nothing but the packages' tests needs it, and they say so.
        Err(error) => println!("Debian root    {error:#}"),
    }
    println!("packages       {}", packages::names().join(" "));
    match kernels {
        Ok(kernels) => println!("kernels        {}", kernels.join(" ")),
        // Nothing but `vm` needs them, and it says so.
        Err(error) => println!("kernels        {error:#}"),
    }
    println!("cache          {}", cache::directory()?.display());
    Ok(())
}

/// What it takes to compile.
pub(crate) fn for_build() -> Result<Tools> {
    if let Some(tools) = stamp::read() {
        return Ok(tools);
    }
    let _guard = cache::lock()?;
    let toolchain = compiler::find_or_install()?;
    let linker = linker::find_or_install()?;
    let tools = Tools { toolchain, linker };
    stamp::write(&tools)?;
    Ok(tools)
}

/// What a program without C is linked statically for on this machine, if that can be had.
pub(crate) fn static_target_of_host() -> Option<&'static str> {
    static_target::of_host()
}

/// What the programs that are shipped are built for.
pub(crate) fn static_target(processor: Processor) -> Result<StaticTarget> {
    static_target::find_or_install(processor)
}

/// What it takes to make containers and send traffic between them.
pub(crate) fn for_traffic() -> Result<()> {
    packages::ensure()
}

/// The same, the container runtimes that the tests drive, and a terminal.
pub(crate) fn for_tests() -> Result<()> {
    packages::ensure()?;
    packages::ensure_compilers()?;
    packages::ensure_terminals()?;
    packages::ensure_runtimes()
}

/// What it takes to render the chart: the path of helm.
pub(crate) fn for_chart() -> Result<PathBuf> {
    helm::find_or_install()
}

/// What it takes to run the alert rules' tests: the path of promtool.
pub(crate) fn for_alerts() -> Result<PathBuf> {
    promtool::find_or_install()
}

/// What it takes to run the plugin as netavark's: the path of netavark.
pub(crate) fn for_netavark() -> Result<PathBuf> {
    netavark::find_or_install()
}

/// What it takes to run the client in Python: the path of a Python.
pub(crate) fn for_clients() -> Result<PathBuf> {
    python_grpc::find_or_install()
}

/// What it takes to try packages: the path of a Debian root.
pub(crate) fn for_packages() -> Result<PathBuf> {
    packages::ensure_packagers()?;
    debian_root::find_or_make()
}

/// What it takes to boot other kernels: the path of a busybox that needs no libraries. The kernels are not of it.
pub(crate) fn for_vm() -> Result<PathBuf> {
    for_tests()?;
    packages::ensure_emulator()?;
    lookup::program("busybox").context("busybox was found before")
}

/// What it takes to check everything: the path of cargo-deny.
pub(crate) fn for_lint() -> Result<PathBuf> {
    packages::ensure_compilers()?;
    deny::find_or_install()
}
