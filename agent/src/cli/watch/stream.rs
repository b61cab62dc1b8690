//! The packets of one watch, until its time is over, there were enough, or the user has had enough.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shunt_agent_api::{
    Client, ClientError, PacketReport, Reply, Request, WatchReport, WatchRequest, socket_path,
};

use super::interrupted::Interrupted;
use super::selection::Selection;
use super::unmatched::Unmatched;
use crate::cli::exit::USAGE;
use crate::cli::query::{Query, complain};

/// How long the agent may take to load the watched programs.
const LOADING: Duration = Duration::from_secs(60);

/// How often it is looked whether the user has had enough.
const LOOK: Duration = Duration::from_millis(100);

/// What was not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Losses {
    pub(in crate::cli) left_out: u64,
    pub(in crate::cli) lost: u64,
}

/// What is told of a packet, and its first bytes.
pub(in crate::cli) type Packet = (PacketReport, Vec<u8>);

/// One watch.
pub(in crate::cli) struct Stream<'a> {
    client: Client,
    selection: &'a Selection,
    interrupted: Interrupted,
    until: Option<Instant>,
    /// Packets that are still wanted.
    left: Option<u64>,
    unmatched: Unmatched,
    /// All so far.
    pub(in crate::cli) losses: Losses,
}

impl<'a> Stream<'a> {
    /// Begins; the exit code once it is said why not. What can never have an answer is not asked.
    pub(in crate::cli) fn open(
        query: &Query,
        request: WatchRequest,
        selection: &'a Selection,
    ) -> Result<Self, ExitCode> {
        if let Some(why) = selection.contradiction(&request) {
            // Nothing is left to be said if standard error is closed.
            let _closed = writeln!(io::stderr(), "{why}");
            return Err(USAGE.into());
        }
        let interrupted = Interrupted::listen();
        let socket = socket_path(query.socket.as_deref());
        let begun = Client::connect(&socket).and_then(|mut client| {
            client.ask_by(Request::Watch(request), Instant::now() + LOADING).map(|_| client)
        });
        let client = begun.map_err(|error| complain(&error))?;
        let until = selection.time().map(|time| Instant::now() + time);
        let (left, losses) = (selection.count(), Losses::default());
        Ok(Self { client, selection, interrupted, until, left, unmatched: Unmatched::default(), losses })
    }

    /// The next packets, each with its bytes, and what was not told before them; none at the end.
    ///
    /// # Errors
    /// The agent's end, or a refusal.
    pub(in crate::cli) fn next(&mut self) -> Result<Option<(Vec<Packet>, Losses)>, ClientError> {
        loop {
            let now = Instant::now();
            let is_late = self.until.is_some_and(|until| until <= now);
            if is_late || self.left == Some(0) || self.interrupted.is_over() {
                return Ok(None);
            }
            let look = now + LOOK;
            let until = self.until.map_or(look, |until| until.min(look));
            if let Some(Reply::Watched(report)) = self.client.receive_by(Some(until))? {
                return Ok(Some(self.wanted(report)));
            }
        }
    }

    fn wanted(&mut self, report: WatchReport) -> (Vec<Packet>, Losses) {
        let WatchReport { packets, left_out, lost, unmatched } = report;
        if let Some(unmatched) = unmatched {
            self.unmatched.update(unmatched);
        }
        self.losses.left_out += left_out;
        self.losses.lost += lost;
        let read = |packet: PacketReport| {
            let bytes = STANDARD.decode(&packet.data).unwrap_or_default();
            (packet, bytes)
        };
        let packets = packets.into_iter().map(read);
        let mut packets: Vec<_> =
            packets.filter(|(packet, bytes)| self.selection.has(packet, bytes)).collect();
        if let Some(left) = &mut self.left {
            packets.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= packets.len() as u64;
        }
        (packets, Losses { left_out, lost })
    }
}
