//! `shunt-agent upgrade`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use shunt_agent::config::{Config, ConfigError, ConfigFile, Options};
use shunt_agent::config_check;
use shunt_agent::datapath::upgrade::preview::{self as upgrade, UpgradeReport};

use super::config::check_text;
use super::exit::{INCONSISTENT, USAGE};
use super::printing::{code_with, print_json, print_text};

/// To upgrade is to stop the old agent and to start this one. Whether that will do can be asked before.
#[derive(Args, Debug)]
pub(crate) struct Upgrade {
    /// Can this agent take over from the one that runs now, or ran last? 0 yes, 2 no agent starts with this configuration, 3 no.
    #[arg(long, required = true)]
    check: bool,
    /// 3 as well if the agent that ran last could not take over again afterwards.
    #[arg(long)]
    undoable: bool,
    /// Read options from a TOML file [default: /etc/shunt/agent.toml, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where attachments are remembered [default: /var/lib/shunt].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where maps and links are pinned [default: /sys/fs/bpf/shunt].
    #[arg(long, value_name = "DIR")]
    bpffs: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
}

impl Upgrade {
    pub(crate) fn run(self) -> ExitCode {
        let config = match self.config() {
            Ok(config) => config,
            Err(why) => {
                // Nothing is left to be said if standard error is closed.
                let _closed = io::stderr().lock().write_all(why.as_bytes());
                return USAGE.into();
            }
        };
        let report = upgrade::check(&config);
        let printed = if self.json { print_json(&report) } else { print_text(&(for_people(&report) + "\n")) };
        let may_be = report.possible && (report.lasting.is_empty() || !self.undoable);
        code_with(printed, if may_be { ExitCode::SUCCESS } else { INCONSISTENT.into() })
    }

    /// What an agent would start with.
    ///
    /// # Errors
    /// Why none would, in words.
    fn config(&self) -> Result<Config, String> {
        let in_words = |error: ConfigError| format!("shunt-agent: {error}\n");
        let file = match self.config.as_deref() {
            Some(path) => ConfigFile::open(path).map(Some),
            None => ConfigFile::open_default(),
        };
        let file = file.map_err(in_words)?;
        let (state_dir, bpffs) = (self.state_dir.clone(), self.bpffs.clone());
        let flags = Options { state_dir, bpffs, ..Options::default() };
        let checked = config_check::check_start(file.as_ref(), &flags);
        if !checked.usable {
            return Err(check_text(&checked));
        }
        Config::resolve(file.as_ref(), flags).map_err(in_words)
    }
}

fn for_people(report: &UpgradeReport) -> String {
    let UpgradeReport { version, abi, reasons, older, attachments, kept, rebuilt, aside, lasting, .. } =
        report;
    let mut lines = Vec::new();
    if reasons.is_empty() {
        lines.push(format!("shunt-agent {version} (ABI {abi}) can take over: {attachments} attachments"));
    } else {
        lines.push(format!("shunt-agent {version} (ABI {abi}) cannot take over:"));
        lines.extend(reasons.iter().map(|reason| format!("  {reason}")));
    }
    if !older.is_empty() {
        lines.push(format!("from an agent of ABI {older:?}, whose programs serve until each is replaced"));
        lines.push(format!("maps that are kept: {}", kept.join(", ")));
        lines.push(format!("maps that are written anew: {}", rebuilt.join(", ")));
    }
    lines.extend(lasting.iter().map(|why| format!("this cannot be undone: {why}")));
    lines.extend(aside.iter().map(|file| format!("would be set aside: {file}")));
    lines.join("\n")
}
