//! Log lines, on standard error.
//!
//! They are written by a thread of their own: whoever reads them slowly, or not at all, delays no ADD. Lines that do not fit into
//! the queue are lost and counted, and the status says so; a closed standard error loses them all and ends nothing.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use clap::ValueEnum;
use shunt_trace::Export;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Lines that wait at most; a line has some 200 bytes.
const WAITING: usize = 16_384;

/// The variable that chooses which lines there are.
pub const FILTER: &str = "RUST_LOG";

/// Those that there are otherwise.
const DEFAULT_FILTER: &str = "info";

static LOST: OnceLock<ErrorCounter> = OnceLock::new();

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// Writes the last lines when it is dropped, and exports the last spans.
#[derive(Debug)]
pub struct Log {
    _export: Option<Export>,
    _lines: WorkerGuard,
}

/// Starts the log: lines of level `info` and above, unless `RUST_LOG` says otherwise, and the export of spans where OpenTelemetry's variables ask for it.
/// Starts threads, which have the capabilities that the caller has.
pub fn start(format: LogFormat) -> Log {
    let (lines, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING)
        .lossy(true)
        .thread_name("log")
        .finish(io::stderr());
    LOST.get_or_init(|| lines.error_counter());
    let filter = filter().unwrap_or_else(|| EnvFilter::new(DEFAULT_FILTER));
    // Lines name their trace, whichever are chosen.
    let filter = match shunt_trace::DIRECTIVE.parse() {
        Ok(spans) => filter.add_directive(spans),
        Err(_never) => filter,
    };
    let log = tracing_subscriber::fmt::layer().with_writer(lines).with_target(false);
    let log = match format {
        LogFormat::Text => log.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    let (exported, failed) = match shunt_trace::layer() {
        Ok(exported) => (exported, None),
        Err(error) => (None, Some(error)),
    };
    let (spans, export) = exported.unzip();
    tracing_subscriber::registry().with(log.with_filter(filter)).with(spans).init();
    if export.is_some() {
        tracing::info!("calls that are part of a trace are told to a collector (OTLP)");
    }
    if let Some(error) = failed {
        tracing::warn!(%error, "traces are in the log alone");
    }
    Log { _export: export, _lines: guard }
}

/// What [`FILTER`] says, as far as it can be read.
fn filter() -> Option<EnvFilter> {
    EnvFilter::try_from_env(FILTER).ok()
}

/// Which lines there are, and whether [`FILTER`] says so.
pub fn lines() -> (String, bool) {
    let said = filter().and_then(|_| std::env::var(FILTER).ok());
    let is_said = said.is_some();
    (said.unwrap_or_else(|| DEFAULT_FILTER.to_owned()), is_said)
}

/// Lines that were lost since the start.
pub fn lost() -> usize {
    LOST.get().map_or(0, ErrorCounter::dropped_lines)
}
