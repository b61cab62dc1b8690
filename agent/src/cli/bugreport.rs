//! `shunt-agent bugreport`.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;
use shunt_agent::bugreport::{self, Order, Packed, PartReport, Places};
use shunt_agent::config::{DEFAULT_FILE, Options};
use shunt_agent_api::{SOCKET_ENV, socket_path};

use super::exit::{INCONSISTENT, UNREACHABLE};
use super::printing::{code_with, complain, print_json, print_text, write_json};

/// The output that is no file.
const STDOUT: &str = "-";

/// Run it where the agent runs, as root, whether the agent runs or not.
#[derive(Args, Debug)]
pub(crate) struct Bugreport {
    /// Write the archive to this new file; `-` for standard output [default: shunt-bugreport-NODE-TIME.tar.gz in the current folder].
    #[arg(long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Hash the names of pods, namespaces, containers and nodes, by a key that no other report has.
    #[arg(long)]
    hash_names: bool,
    /// Say in JSON where the archive is and what is missing in it; on standard error, where the archive is standard output.
    #[arg(long)]
    json: bool,
    /// The agent's configuration [default: /etc/shunt/agent.toml].
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE, hide_default_value = true)]
    config: PathBuf,
    /// The agent's socket [default: $SHUNT_AGENT_SOCKET, else the configuration's].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The agent's state directory [default: the configuration's].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The agent's directory of pins [default: the configuration's].
    #[arg(long, value_name = "DIR")]
    bpffs: Option<PathBuf>,
    /// Where the runtime looks for CNI plugins [default: that of `[cluster]`, else /opt/cni/bin].
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// A file with the agent's log [default: the journal of the unit shunt-agent].
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Bugreport {
    /// Writes the archive: 0 every part that there is, 1 no archive, 3 parts are missing.
    pub(super) fn run(self) -> ExitCode {
        let order = Order { places: self.places(), hash_names: self.hash_names };
        let written = bugreport::pack(&order).and_then(|packed| {
            let at = if self.is_piped() { None } else { Some(packed.write(&self.path(&packed))?) };
            Ok((packed, at))
        });
        let (packed, at) = match written {
            Ok(written) => written,
            Err(error) => {
                complain(error);
                return UNREACHABLE.into();
            }
        };
        if self.is_piped()
            && let Err(error) = pipe(packed.bytes())
        {
            complain(error);
            return UNREACHABLE.into();
        }
        let is_whole = packed.parts.iter().all(|part| !part.failed);
        let verdict = if is_whole { ExitCode::SUCCESS } else { INCONSISTENT.into() };
        code_with(self.say(&packed, at.as_deref()), verdict)
    }

    fn is_piped(&self) -> bool {
        self.output.as_deref() == Some(Path::new(STDOUT))
    }

    fn path(&self, packed: &Packed) -> PathBuf {
        self.output.clone().unwrap_or_else(|| default_name(&packed.node, packed.time).into())
    }

    /// What cannot be used of a configuration has the defaults: why is told in the report.
    fn places(&self) -> Places {
        let (options, _) = Options::read_usable(Some(&self.config));
        let node = options.kubernetes.as_ref().and_then(|kubernetes| kubernetes.node.clone());
        let config = shunt_agent::config::Config::from(options);
        let from_environment = std::env::var_os(SOCKET_ENV).is_some_and(|value| !value.is_empty());
        let configured = if from_environment { None } else { Some(config.socket) };
        let cluster = config.cluster.map(|cluster| cluster.cni_bin_dir);
        Places {
            socket: socket_path(self.socket.as_deref().or(configured.as_deref())),
            state_dir: self.state_dir.clone().unwrap_or(config.state_dir),
            bpffs: self.bpffs.clone().unwrap_or(config.bpffs),
            config: self.config.clone(),
            bin_dir: self.bin_dir.clone().or(cluster).unwrap_or_else(|| "/opt/cni/bin".into()),
            log: self.log.clone(),
            node,
        }
    }

    /// Says where the archive is, and what is missing in it: beside it, where it is standard output.
    fn say(&self, packed: &Packed, at: Option<&Path>) -> io::Result<()> {
        let missing: Vec<&PartReport> = packed.parts.iter().filter(|part| part.missing.is_some()).collect();
        let (bytes, path) = (packed.bytes().len(), at.map(|path| path.display().to_string()));
        let json = json!({ "path": path, "bytes": bytes, "parts": packed.parts, "missing": missing });
        match at {
            Some(_) if self.json => print_json(&json),
            Some(path) => print_text(&text(path, bytes, &missing)),
            None if self.json => write_json(io::stderr().lock(), &json),
            None => io::stderr().write_all(lines(&missing).as_bytes()),
        }
    }
}

/// Writes the archive to standard output.
fn pipe(archive: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(archive)?;
    out.flush()
}

fn text(path: &Path, bytes: usize, missing: &[&PartReport]) -> String {
    format!("{} ({bytes} bytes, readable by its owner only)\n{}", path.display(), lines(missing))
}

fn lines(missing: &[&PartReport]) -> String {
    missing.iter().fold(String::new(), |mut lines, part| {
        let _written =
            writeln!(lines, "missing: {}: {}", part.file, part.missing.as_deref().unwrap_or_default());
        lines
    })
}

/// A name with the node and the time, of letters, digits, `-` and `.` only.
fn default_name(node: &str, time: SystemTime) -> String {
    let time: String = humantime::format_rfc3339_seconds(time).to_string().replace([':', '-'], "");
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let node: String = node.chars().filter(is_plain).take(100).collect();
    format!("shunt-bugreport-{node}-{time}.tar.gz")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_file_is_named_after_node_and_time_and_by_nothing_that_leaves_the_folder() {
        let time = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let name = default_name("../node-1.example", time);
        assert_eq!(name, "shunt-bugreport-..node-1.example-20231114T221320Z.tar.gz");
    }
}
