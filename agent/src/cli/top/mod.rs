//! `shunt-agent top`: what every container sends and is sent, now.

mod cells;
mod escape;
mod input;
mod live;
mod once;
mod rates;
mod sample;
mod screen;
mod selection;
mod terminal;
mod units;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use shunt_agent_api::socket_path;

use self::screen::Screen;
use self::selection::{Key, Selection};
use super::exit::{UNREACHABLE, USAGE};
use super::printing::{code_of, print_json, print_text};
use super::query::Query;

/// The shortest time between two samples.
const SHORTEST: Duration = Duration::from_millis(200);

/// The longest one.
const LONGEST: Duration = Duration::from_secs(3600);

/// Options of `top`.
#[derive(Args, Debug)]
pub(crate) struct Top {
    #[command(flatten)]
    query: Query,
    /// Print the rates of one interval and end; so does --json.
    #[arg(long)]
    once: bool,
    /// The time between two looks, as 500ms or 10s.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// What ports are sorted by.
    #[arg(long, value_enum, value_name = "FIGURE", default_value_t)]
    sort: Key,
    /// In the opposite order.
    #[arg(long)]
    reverse: bool,
    /// Only ports of which a name, the host interface or a drop reason has this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Only containers that a limit holds back.
    #[arg(long)]
    throttled: bool,
}

impl Top {
    /// Shows the rates until it is ended: 0 by a key, 1 without an answer (`--once`) or a terminal that works, 2 without a terminal.
    pub(super) fn run(self) -> ExitCode {
        let selection = Selection {
            key: self.sort,
            is_reversed: self.reverse,
            filter: self.filter,
            throttled_only: self.throttled,
        };
        let socket = socket_path(self.query.socket.as_deref());
        if self.once || self.query.json {
            return match once::read(&socket, self.interval) {
                Ok(readout) => {
                    let chosen = once::choose(&readout, &selection);
                    let text = || print_text(&once::text(&chosen));
                    code_of(if self.query.json { print_json(&chosen) } else { text() })
                }
                Err(error) => complain(&escape::escape(&error.to_string()), UNREACHABLE),
            };
        }
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return complain("top needs a terminal for input and output; for scripts: top --once", USAGE);
        }
        match live::follow(Screen::new(selection), &socket, self.interval) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&format!("the terminal cannot be used: {error}"), UNREACHABLE),
        }
    }
}

fn complain(what: &str, code: u8) -> ExitCode {
    // Nothing is left to be said if standard error is closed.
    let _closed = writeln!(io::stderr(), "{what}");
    code.into()
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if (SHORTEST..=LONGEST).contains(&interval) {
        return Ok(interval);
    }
    Err(format!("not within {SHORTEST:?} and {LONGEST:?}"))
}
