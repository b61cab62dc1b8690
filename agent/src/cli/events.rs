//! `shunt-agent events`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use shunt_agent_api::{Client, ClientError, Reply, socket_path};

use super::query::Query;
use super::query::complain;

impl Query {
    /// Prints what happens, a line at a time, until the agent ends (1) or nobody reads any more (0).
    pub(super) fn listen(self) -> ExitCode {
        let socket = socket_path(self.socket.as_deref());
        let subscribed = Client::connect(&socket).and_then(|mut client| client.subscribe().map(|()| client));
        let mut client = match subscribed {
            Ok(client) => client,
            Err(error) => return complain(&error),
        };
        loop {
            match print_next(&mut client) {
                Ok(Ok(())) => {}
                Ok(Err(_nobody_reads)) => return ExitCode::SUCCESS,
                Err(error) => return complain(&error),
            }
        }
    }
}

fn print_next(client: &mut Client) -> Result<io::Result<()>, ClientError> {
    let Reply::Event(event) = client.receive()? else { return Ok(Ok(())) };
    let mut out = io::stdout().lock();
    let written = serde_json::to_writer(&mut out, &event).map_err(io::Error::from);
    Ok(written.and_then(|()| writeln!(out)).and_then(|()| out.flush()))
}
