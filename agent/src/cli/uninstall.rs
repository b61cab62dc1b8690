//! `shunt-agent uninstall`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use shunt_agent::config::{ClusterOptions, Config, Options};
use shunt_agent::logging::{self, LogFormat};
use shunt_agent::state::plugin_directories;
use shunt_agent::uninstall::{
    Obstacle, Places, UninstallError, Uninstalled, is_there, obstacles, uninstall, warnings,
};

use super::escape::{escape, lines};
use super::exit::{INCONSISTENT, UNREACHABLE, USAGE};
use super::printing::{code_of, code_with, complain, print_json, print_text};
use super::{node_test, on_host};

/// What to do about a file that cannot be used: it may say where the agent's directories are.
const BAD_FILE: &str =
    "Correct the file, or say --force: that goes on with what can be used of it, and else the defaults";

/// Run it where the agent runs, in the node's network namespace, whether the agent runs or not.
#[derive(Args, Debug)]
pub(crate) struct Uninstall {
    /// Uninstall although restrictions, host ports or masquerading of running containers end, or the agent's file cannot be used.
    #[arg(long, conflicts_with = "check")]
    force: bool,
    /// Only say what is in the way: 0 nothing, 3 something.
    #[arg(long)]
    check: bool,
    /// Work among the host's files: in a privileged pod that sees the host's processes (`hostPID`).
    #[arg(long)]
    on_host: bool,
    /// Read options from a TOML file [default: /etc/shunt/agent.toml, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the agent listens [default: /run/shunt/agent.sock].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Where attachments are remembered [default: /var/lib/shunt].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where maps and links are pinned [default: /sys/fs/bpf/shunt].
    #[arg(long, value_name = "DIR")]
    bpffs: Option<PathBuf>,
    /// Where the runtime looks for CNI plugins. Directories that `install-plugin` has noted are looked at as well, and `[cluster]`'s.
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    bin_dir: PathBuf,
    /// Where the agent's program is.
    #[arg(long, value_name = "DIR", default_value = "/usr/local/sbin")]
    sbin_dir: PathBuf,
    /// Leave the agent's program: a package manager removes it.
    #[arg(long, conflicts_with = "sbin_dir")]
    keep_agent: bool,
    /// Where the runtime looks for network configurations.
    #[arg(long, value_name = "DIR", default_value = "/etc/cni/net.d")]
    conf_dir: PathBuf,
    /// Where netavark looks for plugins.
    #[arg(long, value_name = "DIR", default_value = "/usr/local/libexec/netavark")]
    netavark_dir: PathBuf,
    /// Where podman keeps its networks.
    #[arg(long, value_name = "DIR", default_value = "/etc/containers/networks")]
    podman_networks: PathBuf,
    /// The network configuration that the agent has written as the cluster's network, which goes too [default: that of `[cluster]`].
    #[arg(long, value_name = "FILE")]
    conflist: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
}

impl Uninstall {
    pub(crate) fn run(self) -> ExitCode {
        if self.on_host {
            let arguments: Vec<_> = std::env::args_os().skip(1).filter(|word| word != "--on-host").collect();
            let words: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
            let error = on_host::start_again(&words);
            return refuse(&format!("the host's files cannot be reached: {error}"), UNREACHABLE);
        }
        let (file, fault) = Options::read_usable(self.config.as_deref());
        let _written_to_the_end = logging::start(LogFormat::Text);
        let (only_look, force, json) = (self.check, self.force, self.json);
        let (config, places) = self.places(file);
        let is_guessed = fault.is_some();
        if let Some(fault) = fault {
            if !force && is_there(&config, &places) {
                return refuse(&format!("{fault}\n{BAD_FILE}"), USAGE);
            }
            complain(lines(&format!("{fault}\n{}", guessed(&config, &places))).trim_end());
        }
        if only_look {
            return look(&config, &places, json);
        }
        // While their plugins are there.
        let left = node_test::release(&places.bin_dirs);
        left.iter().for_each(|what| complain(format_args!("left by `shunt-agent test`: {}", escape(what))));
        match uninstall(&config, &places, force) {
            Ok(done) if json => code_of(print_json(&in_json(&done))),
            Ok(done) => say(&report(&done, is_guessed.then_some(&config)), ExitCode::SUCCESS),
            Err(error @ UninstallError::Obstacles(_)) => refuse(&error.to_string(), INCONSISTENT),
            Err(error) => refuse(&error.to_string(), UNREACHABLE),
        }
    }

    /// Where everything is, by the flags and the agent's file.
    fn places(self, file: Options) -> (Config, Places) {
        let flags = Options {
            socket: self.socket,
            state_dir: self.state_dir,
            bpffs: self.bpffs,
            cluster: self.conflist.map(ClusterOptions::written_to),
            ..Options::default()
        };
        let of_cluster = file.cluster_bin_dir();
        let config = Config::from(flags.or(file));
        let places = Places {
            bin_dirs: plugin_directories::all(self.bin_dir, of_cluster, &config.state_dir),
            sbin_dir: (!self.keep_agent).then_some(self.sbin_dir),
            conf_dir: self.conf_dir,
            netavark_dir: self.netavark_dir,
            podman_networks: self.podman_networks,
        };
        (config, places)
    }
}

/// Where everything is taken to be where the file does not say all of it.
fn guessed(config: &Config, places: &Places) -> String {
    let Config { state_dir, bpffs, socket, .. } = config;
    let plugins: Vec<_> = places.bin_dirs.iter().map(|directory| directory.display().to_string()).collect();
    format!(
        "going on with what can be used of the file, and else the defaults: state in {}, pins in {}, the socket {}, plugins in {}",
        state_dir.display(),
        bpffs.display(),
        socket.display(),
        plugins.join(", ")
    )
}

/// `--check`.
fn look(config: &Config, places: &Places, json: bool) -> ExitCode {
    let found = match obstacles(config, places) {
        Ok(found) => words(&found),
        Err(error) => return refuse(&error.to_string(), UNREACHABLE),
    };
    let verdict = if found.is_empty() { ExitCode::SUCCESS } else { INCONSISTENT.into() };
    let warnings = warnings(config, places);
    if json {
        return code_with(print_json(&json!({ "obstacles": found, "warnings": warnings })), verdict);
    }
    if !found.is_empty() {
        return say(&found.join("\n"), verdict);
    }
    let nothing = ["nothing is in the way".to_owned()].into_iter();
    say(&nothing.chain(warned(&warnings)).collect::<Vec<_>>().join("\n"), verdict)
}

fn in_json(done: &Uninstalled) -> Value {
    json!({
        "stopped": done.stopped,
        "attachments": done.attachments,
        "handed_over": done.handed_over,
        "files": done.files,
        "lost": words(&done.lost),
        "warnings": done.warnings,
    })
}

/// What was done; `guessed` is where it was looked as far as the agent's file could be used.
fn report(done: &Uninstalled, guessed: Option<&Config>) -> String {
    let mut report = Vec::new();
    report.extend(done.stopped.map(|pid| format!("stopped the agent (process {pid})")));
    report.push(format!(
        "{} attachments go on by the kernel's bridge; rules of other plugins do host ports and masquerading of {}",
        done.attachments, done.handed_over
    ));
    report.extend(done.files.iter().cloned());
    report.extend(words(&done.lost).into_iter().map(|line| format!("lost: {line}")));
    report.extend(warned(&done.warnings));
    report.push(match guessed {
        None => "nothing of shunt is left on this node but the agent's configuration and its service unit"
            .to_owned(),
        Some(Config { state_dir, bpffs, socket, .. }) => format!(
            "nothing of shunt is left in {}, in {} and at {}: the file that cannot be used may name others",
            state_dir.display(),
            bpffs.display(),
            socket.display()
        ),
    });
    report.join("\n")
}

fn warned(warnings: &[String]) -> impl Iterator<Item = String> {
    warnings.iter().map(|warning| format!("warning: {warning}"))
}

fn words(obstacles: &[Obstacle]) -> Vec<String> {
    obstacles.iter().map(ToString::to_string).collect()
}

fn say(text: &str, verdict: ExitCode) -> ExitCode {
    code_with(print_text(&lines(text)), verdict)
}

fn refuse(text: &str, code: u8) -> ExitCode {
    complain(lines(text).trim_end());
    code.into()
}
