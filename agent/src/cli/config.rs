//! `shunt-agent config`: is a file good, and what is in force in the agent that runs?

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use shunt_agent::config_check::{self, ConfigCheck};
use shunt_agent_api::Request;

use super::escape::line;
use super::exit::{INCONSISTENT, USAGE};
use super::printing::{code_with, print_json, print_text};
use super::query::Query;

/// The two questions.
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// Would an agent start with this file on this node, and do what the file says? 0 yes, 2 it would not start, 3 not all of it.
    Check(Check),
    /// What is in force in the agent that runs, and where each value comes from: the file, a flag, the environment, or the default.
    Show(Query),
}

#[derive(Args, Debug)]
struct Check {
    /// The TOML file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
}

impl Config {
    pub(super) fn run(self) -> ExitCode {
        match self.question {
            Question::Check(check) => check.run(),
            Question::Show(query) => query.ask(Request::Config),
        }
    }
}

impl Check {
    fn run(self) -> ExitCode {
        let checked = config_check::check(&self.file);
        let printed = if self.json { print_json(&checked) } else { print_text(&check_text(&checked)) };
        let verdict: ExitCode = match checked {
            ConfigCheck { usable: false, .. } => USAGE.into(),
            ConfigCheck { faults, .. } if !faults.is_empty() => INCONSISTENT.into(),
            ConfigCheck { .. } => ExitCode::SUCCESS,
        };
        code_with(printed, verdict)
    }
}

/// What came of a check, a line for each fault.
pub(super) fn check_text(ConfigCheck { file, usable, faults }: &ConfigCheck) -> String {
    let verdict = match (usable, faults.is_empty()) {
        (true, true) => "an agent can start with it, and does all that it says",
        (true, false) => "an agent starts with it, and does not do all that it says",
        (false, _) => "no agent starts with it",
    };
    let mut lines = vec![format!("{file}: {verdict}")];
    lines.extend(faults.iter().map(|fault| {
        let kind = if fault.is_refused { "error" } else { "warning" };
        format!("{kind}: {fault}")
    }));
    lines.iter().map(|text| line(text)).collect()
}

#[cfg(test)]
mod tests {
    use shunt_agent::config::Fault;

    use super::*;

    #[test]
    fn a_fault_is_one_line_whatever_its_key_is() {
        let fault = Fault::refused(
            None,
            Some(3),
            "unknown field `a\u{1b}[2J\nb\u{202e}`".into(),
            "take it out".into(),
        );
        let checked = ConfigCheck { file: "agent.toml".into(), usable: false, faults: vec![fault] };
        let wanted = "agent.toml: no agent starts with it\n\
                      error: line 3: unknown field `a\\u{1b}[2J\\nb\\u{202e}`; take it out\n";
        assert_eq!(check_text(&checked), wanted);
    }
}
