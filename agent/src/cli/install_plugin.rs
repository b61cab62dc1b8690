//! `shunt-agent install-plugin`: what a pod's init container, or an administrator, puts the plugin on a node with.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use shunt_agent::install::Installation;

use super::exit::UNREACHABLE;

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
}

impl InstallPlugin {
    pub(crate) fn run(self) -> ExitCode {
        match self.install() {
            Ok(done) => {
                // The exit code says it to a reader that has heard enough.
                let _closed = writeln!(io::stdout(), "{}", done.join("\n"));
                ExitCode::SUCCESS
            }
            Err(error) => {
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
