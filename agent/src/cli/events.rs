//! `shunt-agent events`.

use std::io;
use std::process::ExitCode;

use shunt_agent_api::{Client, ClientError, Reply, socket_path};

use super::printing::{code_of, print_json_line};
use super::query::{Query, complain};

impl Query {
    /// Prints what happens, a line at a time, until the agent ends or the output fails (1), or nobody reads any more (0).
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
                Ok(Err(error)) => return code_of(Err(error)),
                Err(error) => return complain(&error),
            }
        }
    }
}

fn print_next(client: &mut Client) -> Result<io::Result<()>, ClientError> {
    let Reply::Event(event) = client.receive()? else { return Ok(Ok(())) };
    Ok(print_json_line(&event))
}
