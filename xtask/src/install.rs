//! `cargo xtask install`: puts the binaries where a container runtime and an administrator look for them. The agent knows the plugin's
//! names; it also installs the plugin from a container image.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::{build, process, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where the runtime looks for CNI plugins
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    bin_dir: PathBuf,
    /// Where the agent goes
    #[arg(long, value_name = "DIR", default_value = "/usr/local/sbin")]
    sbin_dir: PathBuf,
    /// Also take the names bridge, vlan, portmap and bandwidth; what is there is kept as NAME.orig
    #[arg(long)]
    drop_in: bool,
    /// Note --bin-dir nowhere on this machine: it is below the root of a package that is built
    #[arg(long)]
    no_note: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    build::run()?;
    let agent = workspace::release_binary("shunt-agent");
    let mut install = Command::new(&agent);
    // The runtime of a single node is podman's as often as containerd's: what it needs besides is its own matter.
    install.args(["install-plugin", "--without-loopback", "--bin-dir"]).arg(&arguments.bin_dir);
    if arguments.drop_in {
        install.arg("--drop-in");
    }
    if arguments.no_note {
        install.arg("--no-note");
    }
    process::run(&mut install)?;
    copy(&agent, &arguments.sbin_dir.join("shunt-agent"))
}

/// Copies beside the final name and renames: a running binary is never written to, and nobody sees half of one.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let directory = to.parent().context("an installed file lies in a directory")?;
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let unfinished = to.with_extension("new");
    fs::copy(from, &unfinished)
        .and_then(|_| fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&unfinished, to))
        .with_context(|| format!("cannot install {}", to.display()))?;
    println!("{}", to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_replaced_by_an_executable_one() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::write(path("built"), "agent").unwrap();
        fs::create_dir(path("sbin")).unwrap();
        fs::write(path("sbin/shunt-agent"), "an older agent").unwrap();
        copy(&path("built"), &path("sbin/shunt-agent")).unwrap();
        assert_eq!(fs::read_to_string(path("sbin/shunt-agent")).unwrap(), "agent");
        assert_eq!(fs::metadata(path("sbin/shunt-agent")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(path("sbin")).unwrap().count(), 1);
    }
}
