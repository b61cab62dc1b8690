//! `shunt-agent install-plugin`: what a pod's init container, or an administrator, puts the plugin on a node with.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use shunt_agent::config::{DEFAULT_STATE_DIR, Options};
use shunt_agent::install::Installation;
use shunt_agent::state::plugin_directories;

use super::exit::UNREACHABLE;
use super::printing::{code_of, complain, print_json, print_text};

/// Needs no agent and no privileges but to write the directory. May be repeated, also while the plugin is called.
#[derive(Args, Debug)]
pub(crate) struct InstallPlugin {
    /// Where the runtime looks for CNI plugins [default: /opt/cni/bin; the plugin is renewed in noted directories, too].
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// Where another `--bin-dir` is noted, for upgrades and `uninstall` [default: /var/lib/shunt].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Note no directory: this one is no node's, but that of a package or an image that is built.
    #[arg(long, conflicts_with = "state_dir")]
    no_note: bool,
    /// The plugin's file [default: `shunt` beside this program].
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Also take the names bridge, vlan, portmap and bandwidth; what is there is kept as NAME.orig.
    #[arg(long)]
    drop_in: bool,
    /// Leave the name `loopback` alone, also where there is no plugin of that name: for runtimes that call none.
    #[arg(long)]
    without_loopback: bool,
    /// Also link the plugin into a directory where netavark looks for plugins (podman's `netavark_plugin_dirs`).
    #[arg(long, value_name = "DIR")]
    netavark_dir: Option<PathBuf>,
    /// Say in JSON what was done.
    #[arg(long)]
    json: bool,
}

impl InstallPlugin {
    pub(crate) fn run(self) -> ExitCode {
        let in_json = self.json;
        match self.install() {
            Ok(done) if in_json => code_of(print_json(&json!({ "done": done }))),
            Ok(done) => code_of(print_text(&(done.join("\n") + "\n"))),
            Err(error) => {
                complain(error);
                UNREACHABLE.into()
            }
        }
    }

    fn install(self) -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let plugin = match self.from {
            Some(plugin) => plugin,
            None => beside(&std::env::current_exe()?),
        };
        // A fault of the file is not the plugin's: `upgrade --check` tells it before.
        let (file, _) = Options::read_usable(None);
        let of_cluster = file.cluster_bin_dir();
        let state_dir = self.state_dir.or(file.state_dir).unwrap_or_else(|| DEFAULT_STATE_DIR.into());
        let mut done = Vec::new();
        let (bin_dir, others) = match self.bin_dir {
            Some(bin_dir) => {
                if !self.no_note {
                    done.extend(noted(&state_dir, &bin_dir));
                }
                (bin_dir, Vec::new())
            }
            None => {
                let default = PathBuf::from(plugin_directories::DEFAULT);
                let others = plugin_directories::all(default.clone(), of_cluster, &state_dir).split_off(1);
                (default, others)
            }
        };
        let (drop_in, loopback, netavark_dir) = (self.drop_in, !self.without_loopback, self.netavark_dir);
        let first = Installation { plugin, bin_dir, drop_in, loopback, netavark_dir };
        done.extend(first.install()?);
        for bin_dir in others {
            done.extend(Installation { bin_dir, ..first.clone() }.renew()?);
        }
        Ok(done)
    }
}

/// Notes a directory, for those who would not look there. A state directory that cannot be made is no node's (that of a pod): nothing is
/// noted. Otherwise says why it is not.
fn noted(state_dir: &Path, bin_dir: &Path) -> Option<String> {
    let error = plugin_directories::note(state_dir, bin_dir).err()?;
    let is_no_nodes = [ErrorKind::NotFound, ErrorKind::ReadOnlyFilesystem].contains(&error.kind());
    let (state_dir, bin_dir) = (state_dir.display(), bin_dir.display());
    (!is_no_nodes).then(|| {
        format!("{bin_dir} is not noted in {state_dir}: {error}; name it to `uninstall` and at an upgrade")
    })
}

fn beside(agent: &Path) -> PathBuf {
    agent.with_file_name("shunt")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_is_noted_unless_it_is_no_nodes() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("plugin"), "a program").unwrap();
        for no_note in [true, false] {
            let verb = InstallPlugin {
                bin_dir: Some(path("bin")),
                state_dir: Some(path("state")),
                no_note,
                from: Some(path("plugin")),
                drop_in: false,
                without_loopback: false,
                netavark_dir: None,
                json: false,
            };
            verb.install().unwrap();
            assert_eq!((path("bin/shunt").exists(), path("state").exists()), (true, !no_note));
        }
    }
}
