//! `shunt-agent drops`: what was dropped, or what is, packet by packet.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Args;
use shunt_agent_api::{Request, WatchRequest};

use super::exit::USAGE;
use super::printing::{code_of, print_json_line, print_text};
use super::query::{Query, complain};
use super::watch::{Losses, Selection, Stream, line, losses};

/// Bytes of each packet: all headers.
const SNAP: u32 = 256;

/// Packets a second, of each reason and CPU.
const RATE: u32 = 100;

/// Options of `drops`.
#[derive(Args, Debug)]
pub(crate) struct Drops {
    #[command(flatten)]
    query: Query,
    /// Tell each packet as it is dropped, one a line, until Ctrl-C: a sample, where there are many.
    ///
    /// The agent puts programs in the place of its own meanwhile that tell what they drop; other packets cost next to nothing.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    selection: Selection,
}

impl Drops {
    /// 0 answered, 1 not, 2 the options make no sense.
    pub(super) fn ask(self) -> ExitCode {
        if self.watch {
            return self.watch();
        }
        if self.selection != Selection::default() {
            // Nothing is left to be said if standard error is closed.
            let _closed = writeln!(io::stderr(), "packets are selected for --watch only");
            return USAGE.into();
        }
        self.query.ask(Request::Drops)
    }

    fn watch(self) -> ExitCode {
        let Self { query, selection, .. } = self;
        let request = WatchRequest {
            dropped: true,
            snap: SNAP,
            rate: selection.rate_or(RATE),
            ports: selection.ports(),
            ..WatchRequest::default()
        };
        let mut stream = match Stream::open(&query, request, &selection) {
            Ok(stream) => stream,
            Err(code) => return code,
        };
        let printed = loop {
            match stream.next() {
                Ok(None) => break Ok(()),
                Ok(Some((packets, _))) => {
                    let told = packets.iter().try_for_each(|(packet, bytes)| match query.json {
                        true => print_json_line(packet),
                        false => print_text(&line(packet, bytes)),
                    });
                    if told.is_err() {
                        break told;
                    }
                }
                Err(error) => return complain(&error),
            }
        };
        if stream.losses != Losses::default() {
            let _closed = writeln!(io::stderr(), "{}", losses(stream.losses));
        }
        code_of(printed)
    }
}
