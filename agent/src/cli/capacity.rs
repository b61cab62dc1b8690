//! `shunt-agent capacity`: for a person, for a program, or for a scheduler.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use shunt_agent::capacity::node_name;
use shunt_agent::capacity::slice::resource_slice;
use shunt_agent_api::{Client, Reply, Request, socket_path};

use super::exit::{UNREACHABLE, USAGE};
use super::printing::{code_of, print_text};
use super::query;
use super::query::Query;

/// Options of `capacity`.
#[derive(Args, Debug)]
pub(crate) struct Capacity {
    #[command(flatten)]
    query: Query,
    /// How it is said.
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<Format>,
    /// The node's name in a resource slice [default: $NODE_NAME, else the host's name].
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Format {
    /// A table
    Text,
    /// The report as it is
    Json,
    /// A Kubernetes ResourceSlice (resource.k8s.io/v1), for `kubectl apply`
    #[value(name = "resourceslice")]
    ResourceSlice,
}

impl Capacity {
    pub(super) fn ask(self) -> ExitCode {
        if self.format == Some(Format::ResourceSlice) {
            return self.slice();
        }
        let json = self.query.json || self.format == Some(Format::Json);
        Query { json, ..self.query }.ask(Request::Capacity)
    }

    fn slice(&self) -> ExitCode {
        let socket = socket_path(self.query.socket.as_deref());
        let asked = Client::connect(&socket).and_then(|mut client| client.ask(Request::Capacity));
        let capacity = match asked {
            Ok(Reply::Capacity(capacity)) => capacity,
            Ok(_) => return UNREACHABLE.into(),
            Err(error) => return query::complain(&error),
        };
        match resource_slice(&self.node.clone().unwrap_or_else(node_name), &capacity) {
            Ok(slice) => code_of(print_text(&format!("{slice:#}\n"))),
            Err(error) => {
                let _closed = writeln!(io::stderr(), "{error}");
                USAGE.into()
            }
        }
    }
}
