//! What a running agent says, as the query verbs print it.

use std::path::Path;
use std::time::Instant;

use shunt_agent_api::{Client, Reply, Request};

use super::part::{Had, Job, Lack};

/// Connections in the sample.
const SAMPLE: usize = 1_000;

/// A part for each question, over a connection of its own: an answer that is late keeps no other waiting.
pub(super) fn jobs(socket: &Path) -> Vec<Job> {
    let ask = |file, request| {
        let socket = socket.to_path_buf();
        Job::new(file, move |by| answer(&socket, request, by))
    };
    let sampled = socket.to_path_buf();
    vec![
        ask("status.json", Request::Status),
        ask("check.json", Request::Audit),
        ask("ports.json", Request::Ports),
        ask("account.json", Request::Account),
        ask("drops.json", Request::Drops),
        ask("mappings.json", Request::Mappings),
        ask("capacity.json", Request::Capacity),
        Job::new("flows.json", move |by| sample(&sampled, by)),
    ]
}

fn answer(socket: &Path, request: Request, by: Instant) -> Result<Had, Lack> {
    let asked = Client::connect_by(socket, by).and_then(|mut client| client.ask_by(request, by));
    had(asked.map_err(|error| Lack::Failed(error.to_string()))?)
}

fn sample(socket: &Path, by: Instant) -> Result<Had, Lack> {
    let asked = Client::connect_by(socket, by).and_then(|client| client.sample_by(Request::Flows, by));
    let (reply, more) = asked.map_err(|error| Lack::Failed(error.to_string()))?;
    let Reply::Flows(mut flows) = reply else { return had(reply) };
    let all = flows.len();
    flows.truncate(SAMPLE);
    let is_whole = !more && all == flows.len();
    let note = (!is_whole).then(|| format!("a sample: {} of the translated connections", flows.len()));
    Ok(Had::json(flows)?.noting(note))
}

fn had(reply: Reply) -> Result<Had, Lack> {
    match reply {
        Reply::Status(status) => Had::json(status),
        Reply::Audited(report) => Had::json(report),
        Reply::Ports(ports) => Had::json(ports),
        Reply::Account(accounts) => Had::json(accounts),
        Reply::Drops(drops) => Had::json(drops),
        Reply::Mappings(mappings) => Had::json(mappings),
        Reply::Capacity(capacity) => Had::json(capacity),
        other => Err(Lack::Failed(format!("the agent has answered something else: {other:?}"))),
    }
}
