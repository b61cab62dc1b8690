//! `shunt-agent adopt`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use shunt_agent::adoption::{AdoptError, Adopted, adopt, give_back};
use shunt_agent_api::{Client, socket_path};

use super::exit::{INCONSISTENT, UNREACHABLE};
use super::query::complain;

/// Run it in the node's network namespace. Containers keep their interfaces, addresses and connections.
#[derive(Args, Debug)]
pub(crate) struct Adopt {
    /// Only the containers of this bridge.
    #[arg(long, value_name = "NAME")]
    bridge: Option<String>,
    /// Give the containers that shunt did not make back to the kernel's bridge.
    #[arg(long)]
    back: bool,
    /// Where the runtime's libcni remembers its ADDs.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/cni")]
    cache_dir: PathBuf,
    /// The agent's socket [default: $SHUNT_AGENT_SOCKET, else /run/shunt/agent.sock].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Adopt {
    /// 0 all, 1 not answered, 3 some were left.
    pub(crate) fn run(self) -> ExitCode {
        let bridge = self.bridge.as_deref();
        let done = Client::connect(&socket_path(self.socket.as_deref())).map_err(AdoptError::from).and_then(
            |mut client| match self.back {
                true => give_back(&mut client, bridge),
                false => adopt(&mut client, &self.cache_dir, bridge),
            },
        );
        match done {
            Ok(adopted) => self.say(&adopted),
            Err(AdoptError::Agent(error)) => complain(&error),
            Err(error) => {
                // Nothing is left to be said if standard error is closed.
                let _closed = writeln!(io::stderr(), "shunt-agent: {error}");
                UNREACHABLE.into()
            }
        }
    }

    fn say(&self, adopted: &Adopted) -> ExitCode {
        let what = if self.back { "given back" } else { "on the fast path" };
        let done = adopted.done.iter().map(|key| format!("{key}: {what}"));
        let left = adopted.left.iter().map(|(key, why)| format!("{key}: left as it is: {why}"));
        let lines: Vec<_> = done.chain(left).collect();
        let text = if lines.is_empty() { "no container".to_owned() } else { lines.join("\n") };
        // The exit code says it to a reader that has heard enough.
        let _closed = writeln!(io::stdout(), "{text}");
        if adopted.left.is_empty() { ExitCode::SUCCESS } else { INCONSISTENT.into() }
    }
}
