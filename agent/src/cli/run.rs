//! `shunt-agent run`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use shunt_agent::capacity::UplinkOptions;
use shunt_agent::config::{Admission, AttachMode, Config, ConfigError, ConfigFile, Options};
use shunt_agent::logging::{self, LogFormat};
use shunt_agent::{panics, privileges, server, writable_sysctls};

use super::exit::USAGE;
use super::keyless::keyless;

/// Flags of `run`; each wins over the key of the same name in the file.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Read options from a TOML file [default: /etc/shunt/agent.toml, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen here [default: /run/shunt/agent.sock].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Let members of this group ask, and change nothing. The agent itself has to be a member.
    #[arg(long, value_name = "NAME|GID")]
    group: Option<String>,
    /// Remember attachments here [default: /var/lib/shunt].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Pin maps and links here, directly below a BPF file system's mount point [default: /sys/fs/bpf/shunt].
    #[arg(long, value_name = "DIR")]
    bpffs: Option<PathBuf>,
    /// The cgroup2 directory whose processes reach host ports from the node itself [default: all there are].
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// For how many translated connections there is room [default: by the machine's memory].
    #[arg(long, value_name = "N")]
    max_flows: Option<u32>,
    /// How many of them one container may have [default: a quarter].
    #[arg(long, value_name = "N")]
    max_flows_per_container: Option<u32>,
    /// Declare an uplink; may be given more than once.
    #[arg(long, value_name = "IFNAME")]
    uplink: Vec<String>,
    /// What is done about an attachment that asks for more bandwidth than is left [default: off].
    #[arg(long, value_enum)]
    admission: Option<Admission>,
    /// Serve metrics for Prometheus here, at /metrics.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// How programs are attached, for tests.
    #[arg(long, value_enum, hide = true)]
    attach: Option<AttachMode>,
    /// Repair nothing, for tests.
    #[arg(long, hide = true)]
    no_repairs: bool,
    /// Load the programs of host ports with the first of these and not at the start, for tests.
    #[arg(long, hide = true)]
    late_programs: bool,
    /// How log lines look. `RUST_LOG` chooses which there are [default: text].
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
}

impl Run {
    pub(crate) fn run(self) -> ExitCode {
        // First of all: every thread has what it is made with.
        let given_up = privileges::give_up_the_rest();
        panics::end_the_process();
        let _written_to_the_end = logging::start(self.log_format.unwrap_or_default());
        if let Err(error) = given_up {
            tracing::error!(%error, "what is not needed cannot be given up");
            return ExitCode::FAILURE;
        }
        let config = match self.config() {
            Ok(config) => config,
            Err(error) => {
                tracing::error!(%error, "the configuration cannot be used");
                return USAGE.into();
            }
        };
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        match writable_sysctls::ensure() {
            Ok(false) => {}
            Ok(true) => tracing::info!("/proc/sys/net was read-only and is writable for this process now"),
            Err(error) => tracing::warn!(
                %error,
                "/proc/sys/net is read-only: settings of the kernel stay as they are, and calls of the CNI service fail where they need others"
            ),
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ran = match runtime {
            Ok(runtime) => runtime.block_on(server::run(config)),
            Err(source) => Err(server::ServerError::Io { what: "the runtime", source }),
        };
        match ran {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!(%error, "the agent cannot run");
                ExitCode::FAILURE
            }
        }
    }

    fn config(self) -> Result<Config, ConfigError> {
        let file = match &self.config {
            Some(path) => Some(ConfigFile::open(path)?),
            None => ConfigFile::open_default()?,
        };
        let of_tests = [("no_repairs", self.no_repairs), ("late_programs", self.late_programs)];
        let keyless = keyless(self.log_format, of_tests);
        let flags = Options {
            socket: self.socket,
            group: self.group,
            state_dir: self.state_dir,
            bpffs: self.bpffs,
            cgroup: self.cgroup,
            max_flows: self.max_flows,
            max_flows_per_container: self.max_flows_per_container,
            mark_mask: None,
            metrics: self.metrics,
            metrics_labels: None,
            admission: self.admission,
            attach: self.attach,
            masquerade: None,
            announcements: None,
            filters: None,
            filter_lease: None,
            filter_host_ports: None,
            big_tcp: None,
            grace_periods: None,
            uplinks: self.uplink.into_iter().map(|name| (name, UplinkOptions::default())).collect(),
            kubernetes: None,
            cluster: None,
            api: None,
        };
        let (repairs, late_programs) = (!self.no_repairs, self.late_programs);
        let config = Config::resolve(file.as_ref(), flags)?;
        let origins = config.origins.clone().with_keyless(keyless);
        Ok(Config { repairs, late_programs, origins, ..config })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::super::Cli;

    const MANUAL: &str = include_str!("../../../docs/operations.md");

    /// Flags that have no key.
    const KEYLESS: [&str; 5] = ["config", "log-format", "no-repairs", "late-programs", "help"];

    #[test]
    fn the_manual_names_the_flag_of_each_key_that_has_one() {
        let agent = Cli::command();
        let run = agent.find_subcommand("run").unwrap();
        let flags = run.get_arguments().filter_map(|argument| argument.get_long());
        let wanted: BTreeSet<_> = flags.filter(|flag| !KEYLESS.contains(flag)).collect();
        let rows = MANUAL.lines().skip_while(|line| !line.starts_with("<!-- keys: written"));
        let rows = rows.take_while(|line| !line.starts_with("<!-- keys: end"));
        let cells = rows.filter_map(|row| row.split('|').nth(2)?.trim().strip_prefix("`--"));
        let found: BTreeSet<_> = cells.filter_map(|cell| cell.split(['`', ' ']).next()).collect();
        assert_eq!(found, wanted);
    }
}
