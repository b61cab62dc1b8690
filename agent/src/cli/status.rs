//! `shunt-agent status`: all of it, or one of the questions that a supervisor asks.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use shunt_agent_api::{AgentStatus, Reply, Request};

use super::escape::line;
use super::exit::UNREACHABLE;
use super::printing::{code_with, print_json, print_text};
use super::query::Query;

/// Options of `status`.
#[derive(Args, Debug)]
pub(crate) struct Status {
    #[command(flatten)]
    query: Query,
    /// Does the agent answer? One line; 0 or 1.
    #[arg(long)]
    live: bool,
    /// Would an ADD that asks for nothing special succeed? A line for each reason why not; 0 or 1.
    #[arg(long, conflicts_with = "live")]
    ready: bool,
}

impl Status {
    pub(super) fn ask(self) -> ExitCode {
        match self {
            Self { query, live: true, .. } => query.judge("live", |_| Vec::new()),
            Self { query, ready: true, .. } => query.judge("ready", |status| status.obstacles),
            Self { query, .. } => query.ask(Request::Status),
        }
    }
}

impl Query {
    fn judge(self, what: &str, wrong: fn(AgentStatus) -> Vec<String>) -> ExitCode {
        let status = match self.reply_to(Request::Status) {
            Ok(Reply::Status(status)) => status,
            Ok(_) => return UNREACHABLE.into(),
            Err(code) => return code,
        };
        let wrong = wrong(status);
        let is_so = wrong.is_empty();
        let lines = if is_so { line(what) } else { wrong.iter().map(|why| line(why)).collect() };
        let printed = if self.json {
            print_json(&json!({ what: is_so, "obstacles": wrong }))
        } else {
            print_text(&lines)
        };
        code_with(printed, if is_so { ExitCode::SUCCESS } else { UNREACHABLE.into() })
    }
}
