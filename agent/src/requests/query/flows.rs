//! Reports of translated connections. A full table is more than one message takes: they come in pages.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use shunt_agent_api::frame::MAX_MESSAGE;
use shunt_agent_api::{AgentError, ErrorKind, FlowEnds, FlowProtocol, FlowReport, Reply};
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::wire::Protocol;

use super::owners::Owners;
use crate::datapath::in_map;
use crate::resources::Refusal;
use crate::resources::clock::boot_time;
use crate::resources::connection::pairs::Connection;
use crate::resources::connection::table::Table;

/// How long a list may take, until it is read.
const PATIENCE: Duration = Duration::from_secs(60);

/// More connections than any message has room for: the shortest report has so many bytes.
const TOO_MANY: usize = MAX_MESSAGE / 180;

/// Hands over a [`FlowReport`] of every connection, `most` at a time, and each time whether more is to come. The last page may be empty; a page
/// is sorted. An error is handed over as the last page. Stops when nobody takes them, and after a minute.
pub(crate) fn pages(
    table: &Table,
    owners: &Owners,
    most: usize,
    mut give: impl FnMut(Reply, bool) -> ControlFlow<()>,
) {
    let (begun, now) = (Instant::now(), boot_time());
    let (mut page, mut is_late, mut is_wanted) = (Vec::new(), false, true);
    let walked = table.walk(|key, flow| {
        let Some(connection) = table.connection(key, flow) else { return ControlFlow::Continue(()) };
        page.push(flow_report(&connection, owners, now));
        if page.len() < most {
            return ControlFlow::Continue(());
        }
        is_late = begun.elapsed() > PATIENCE;
        is_wanted = !is_late && give(sorted(&mut page), true).is_continue();
        if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let last = match walked.map_err(in_map("FLOWS")).map_err(Refusal::from) {
        Err(refusal) => Reply::Error(refusal.into()),
        Ok(()) if is_late => late(),
        Ok(()) => sorted(&mut page),
    };
    if is_wanted || is_late {
        // Nobody may be left to take it.
        let _gone = give(last, false);
    }
}

fn late() -> Reply {
    let message = "the connections were not read in time: try again, or read faster".to_owned();
    Reply::Error(AgentError { kind: ErrorKind::Unavailable, message })
}

/// The refusal of a list that is too long for one message.
fn too_many() -> Reply {
    let message = "the connections are too many for one message: ask for them in parts".to_owned();
    Reply::Error(AgentError { kind: ErrorKind::NotBuilt, message })
}

/// All of it in one answer.
pub(crate) fn all(table: &Table, owners: &Owners) -> Reply {
    let mut answer = None;
    pages(table, owners, TOO_MANY, |page, more| {
        answer = Some(if more { too_many() } else { page });
        ControlFlow::Break(())
    });
    answer.unwrap_or_else(late)
}

fn sorted(page: &mut Vec<FlowReport>) -> Reply {
    let mut page = std::mem::take(page);
    page.sort_by_key(|flow| (flow.dport, flow.src, flow.sport));
    Reply::Flows(page)
}

fn flow_report(connection: &Connection, owners: &Owners, now: u64) -> FlowReport {
    let (namespace, pod) = owners.of(connection);
    let Connection { request, opener, answerer } = connection;
    let ends = |tuple: &TupleKey| FlowEnds {
        src: IpAddr::from(tuple.source),
        sport: tuple.source_port.number(),
        dst: IpAddr::from(tuple.destination),
        dport: tuple.destination_port.number(),
    };
    FlowReport {
        proto: match Protocol(request.protocol) {
            Protocol::UDP => FlowProtocol::Udp,
            Protocol::SCTP => FlowProtocol::Sctp,
            Protocol::ICMP => FlowProtocol::Icmp,
            Protocol::ICMPV6 => FlowProtocol::Icmpv6,
            _ => FlowProtocol::Tcp,
        },
        src: IpAddr::from(request.source),
        sport: request.source_port.number(),
        dst: IpAddr::from(request.destination),
        dport: request.destination_port.number(),
        translated: ends(&opener.becomes),
        state: connection.phase().name().to_owned(),
        kernel: connection.is_opened_by_kernel(),
        expires_seconds: connection.remaining(now).as_secs(),
        namespace,
        pod,
        packets: opener.packets + answerer.packets,
        bytes: opener.bytes + answerer.bytes,
    }
}
