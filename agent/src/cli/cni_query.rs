//! What is asked of the CNI service, by its own API.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shunt_agent::config::ApiOptions;
use shunt_cni::client::{Client, ClientError};

use super::escape::escape;
use super::exit::UNREACHABLE;
use super::printing::{code_of, print_json, print_text};

/// Options of every verb that asks the CNI service.
#[derive(Args, Debug)]
pub(super) struct CniQuery {
    /// The CNI service's socket [default: /run/shunt/cni.sock].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
}

impl CniQuery {
    /// Asks, and prints a list: 0 answered, 1 not.
    pub(super) fn show<T: Serialize>(
        &self,
        ask: impl FnOnce(&mut Client) -> Result<Vec<T>, ClientError>,
        text: impl FnOnce(&[T]) -> String,
    ) -> ExitCode {
        let socket = self.socket.clone().unwrap_or_else(|| ApiOptions::default().socket);
        match Client::connect(&socket).and_then(|mut client| ask(&mut client)) {
            Ok(list) if self.json => code_of(print_json(&list)),
            Ok(list) => code_of(print_text(&text(&list))),
            Err(error) => {
                let (cure, said) = (cure(&error), escape(&error.to_string()));
                // Nothing is left to be said if standard error is closed.
                let _closed = writeln!(io::stderr(), "the CNI service at {}: {said}{cure}", socket.display());
                UNREACHABLE.into()
            }
        }
    }
}

fn cure(error: &ClientError) -> &'static str {
    match error {
        ClientError::Unreachable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            ": root may ask, and members of the `group` of the section `[api]` in the agent's file"
        }
        ClientError::Unreachable(_) => ": is there a section `[api]` in the agent's file?",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_ask_is_told_who_may() {
        let of = |kind: io::ErrorKind| cure(&ClientError::Unreachable(kind.into()));
        assert!(of(io::ErrorKind::PermissionDenied).contains("`group`"));
        assert!(of(io::ErrorKind::NotFound).contains("is there a section"));
    }
}
