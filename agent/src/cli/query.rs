//! Verbs that ask a running agent and print its answer.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shunt_agent_api::{Client, ClientError, Reply, Request, socket_path};

use super::answer_text::{capacity_text, drops_text, explanation_text, fdb_text, mappings_text, ports_text};
use super::config_text::config_text;
use super::escape::line;
use super::exit::UNREACHABLE;
use super::printing::{code_of, print_json, print_text};
use super::status_text::status_text;

/// Options of every verb that asks a running agent.
#[derive(Args, Debug)]
pub(crate) struct Query {
    /// The agent's socket [default: $SHUNT_AGENT_SOCKET, else /run/shunt/agent.sock].
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl Query {
    /// Asks, and prints the answer: 0 answered, 1 not.
    pub(super) fn ask(self, request: Request) -> ExitCode {
        match self.reply_to(request) {
            Ok(reply) => code_of(self.print(&reply)),
            Err(code) => code,
        }
    }

    /// What the agent answers; else the exit code, once it is said why there is no answer.
    pub(super) fn reply_to(&self, request: Request) -> Result<Reply, ExitCode> {
        let socket = socket_path(self.socket.as_deref());
        let asked = Client::connect(&socket).and_then(|mut client| client.ask(request));
        asked.map_err(|error| complain(&error))
    }

    fn print(&self, reply: &Reply) -> io::Result<()> {
        match reply {
            Reply::Status(status) => self.show(status, status_text),
            Reply::Ports(ports) => self.show(ports, |ports| ports_text(ports)),
            Reply::Fdb(entries) => self.show(entries, |entries| fdb_text(entries)),
            Reply::Mappings(mappings) => self.show(mappings, |mappings| mappings_text(mappings)),
            Reply::Drops(drops) => self.show(drops, |drops| drops_text(drops)),
            Reply::Capacity(capacity) => self.show(capacity, capacity_text),
            Reply::Config(report) => self.show(report, config_text),
            Reply::Explained(explanation) => self.show(explanation, explanation_text),
            other => self.show(other, |other| format!("{other:?}\n")),
        }
    }

    fn show<T: Serialize>(&self, answer: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        if self.json { print_json(answer) } else { print_text(&text(answer)) }
    }
}

pub(super) fn complain(error: &ClientError) -> ExitCode {
    // Nothing is left to be said if standard error is closed.
    let _closed = io::stderr().write_all(line(&error.to_string()).as_bytes());
    UNREACHABLE.into()
}
