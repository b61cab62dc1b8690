//! `cargo xtask install`: puts the binaries where a container runtime and an administrator look for them.
//!
//! The plugin behaves by the configuration's `type`, and a runtime finds a plugin by its file name; so each personality
//! is a symbolic link to the one binary. A file of another project is replaced only with `--drop-in`, and kept.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::{build, workspace};

/// Names of our own.
const PERSONALITIES: [&str; 5] =
    ["shunt-bridge", "shunt-vlan", "shunt-portmap", "shunt-bandwidth", "shunt-ipam"];
/// The reference plugins' names, taken with `--drop-in`.
const REFERENCE: [&str; 4] = ["bridge", "vlan", "portmap", "bandwidth"];

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
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    build::run()?;
    let plugin = workspace::release_binary("shunt");
    let agent = workspace::release_binary("shunt-agent");
    install(&plugin, &agent, arguments)
}

fn install(plugin: &Path, agent: &Path, arguments: &Arguments) -> Result<()> {
    copy(plugin, &arguments.bin_dir.join("shunt"))?;
    for name in PERSONALITIES {
        link(&arguments.bin_dir.join(name))?;
    }
    if arguments.drop_in {
        for name in REFERENCE {
            take_over(&arguments.bin_dir.join(name))?;
        }
    }
    copy(agent, &arguments.sbin_dir.join("shunt-agent"))
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

/// Makes a link to the plugin beside it. Relative, so that the directory may be a mounted host's.
fn link(path: &Path) -> Result<()> {
    let unfinished = path.with_extension("new");
    if unfinished.is_symlink() {
        fs::remove_file(&unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
    }
    symlink("shunt", &unfinished)
        .and_then(|()| fs::rename(&unfinished, path))
        .with_context(|| format!("cannot link {}", path.display()))?;
    println!("{} -> shunt", path.display());
    Ok(())
}

/// Links under a reference plugin's name, after putting the plugin itself aside.
fn take_over(path: &Path) -> Result<()> {
    let ours = fs::read_link(path).is_ok_and(|target| target == Path::new("shunt"));
    if !ours && path.symlink_metadata().is_ok() {
        let aside = path.with_extension("orig");
        fs::rename(path, &aside).with_context(|| format!("cannot keep {}", path.display()))?;
        println!("{} kept as {}", path.display(), aside.display());
    }
    link(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine {
        root: tempfile::TempDir,
    }

    impl Machine {
        /// A directory of plugins with another project's `bridge` in it.
        fn with_a_reference_bridge() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("bin")).unwrap();
            for (name, content) in
                [("bin/bridge", "reference"), ("built-shunt", "plugin"), ("built-agent", "agent")]
            {
                fs::write(root.path().join(name), content).unwrap();
            }
            Self { root }
        }

        fn install(&self, drop_in: bool) {
            let (bin_dir, sbin_dir) = (self.path("bin"), self.path("sbin"));
            let arguments = Arguments { bin_dir, sbin_dir, drop_in };
            install(&self.path("built-shunt"), &self.path("built-agent"), &arguments).unwrap();
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.path(name)).unwrap()
        }
    }

    #[test]
    fn every_personality_is_a_relative_link_to_an_executable_plugin() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(false);
        for name in PERSONALITIES {
            assert_eq!(fs::read_link(machine.path("bin").join(name)).unwrap(), Path::new("shunt"));
        }
        assert_eq!(machine.read("bin/shunt-ipam"), "plugin");
        assert_eq!(machine.read("sbin/shunt-agent"), "agent");
        assert_eq!(fs::metadata(machine.path("bin/shunt")).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn another_projects_bridge_stays_unless_asked_for() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(false);
        assert_eq!(machine.read("bin/bridge"), "reference");
        assert!(!machine.path("bin/vlan").exists());
    }

    #[test]
    fn a_drop_in_keeps_what_it_replaces_and_is_idempotent() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(true);
        machine.install(true);
        assert_eq!(machine.read("bin/bridge"), "plugin");
        assert_eq!(machine.read("bin/bridge.orig"), "reference");
        assert_eq!(machine.read("bin/portmap"), "plugin");
        assert!(!machine.path("bin/portmap.orig").exists());
    }
}
