//! `shunt-agent install-plugin`: what a pod's init container, or an administrator, puts the plugin on a node with.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use shunt_agent::install::Installation;

use super::exit::UNREACHABLE;
use super::printing::{code_of, print_json, print_text};

/// Needs no agent and no privileges but to write the directory. May be repeated, also while the plugin is called.
#[derive(Args, Debug)]
pub(crate) struct InstallPlugin {
    /// Where the runtime looks for CNI plugins.
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    bin_dir: PathBuf,
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
                // Nothing is left to be said if standard error is closed.
                let _closed = writeln!(io::stderr(), "shunt-agent: {error}");
                UNREACHABLE.into()
            }
        }
    }

    fn install(self) -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let plugin = match self.from {
            Some(plugin) => plugin,
            None => beside(&std::env::current_exe()?),
        };
        let loopback = !self.without_loopback;
        let Self { bin_dir, drop_in, netavark_dir, .. } = self;
        Ok(Installation { plugin, bin_dir, drop_in, loopback, netavark_dir }.install()?)
    }
}

fn beside(agent: &Path) -> PathBuf {
    agent.with_file_name("shunt")
}
