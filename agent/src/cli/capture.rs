//! `shunt-agent capture`: the packets themselves, with what became of them.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use shunt_agent_api::WatchRequest;

use super::exit::{UNREACHABLE, USAGE};
use super::printing::{code_with, print_json_line, write_json_line};
use super::query::{Query, complain};
use super::watch::{Losses, Output, PacketFile, Selection, Stream, losses};

/// The most bytes of a packet (`MAX_SNAP` of the programs).
const MOST: u32 = shunt_dataplane::abi::watch::MAX_SNAP;

/// The file that is standard output.
const STDOUT: &str = "-";

/// Packets a second, of each reason and CPU.
const RATE: u32 = 10_000;

/// What becomes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fate {
    /// The fast path delivers them.
    Delivered,
    /// They are dropped.
    Dropped,
    /// They are left to the kernel.
    Passed,
}

/// Options of `capture`.
#[derive(Args, Debug)]
pub(crate) struct Capture {
    #[command(flatten)]
    query: Query,
    /// Where packets are written, as pcapng; - is standard output, as for `| tcpdump -r -`.
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
    /// Only packets of which this becomes.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["delivered", "dropped"])]
    fate: Vec<Fate>,
    /// Bytes of each packet, at most 16384.
    #[arg(short, long, value_name = "BYTES", default_value_t = MOST,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    snaplen: u32,
    #[command(flatten)]
    selection: Selection,
}

impl Capture {
    /// 0 captured, 1 the agent or the file does not work, 2 standard output is a terminal.
    pub(super) fn run(self) -> ExitCode {
        let out = match Output::open(&self.write) {
            Ok(Some(out)) => out,
            Ok(None) => {
                let _closed = writeln!(io::stderr(), "packets are not for a terminal: | tcpdump -r -");
                return USAGE.into();
            }
            Err(error) => {
                self.complain(&error);
                return UNREACHABLE.into();
            }
        };
        let has = |fate| self.fate.contains(&fate);
        let request = WatchRequest {
            dropped: has(Fate::Dropped),
            delivered: has(Fate::Delivered),
            passed: has(Fate::Passed),
            snap: self.snaplen,
            rate: self.selection.rate_or(RATE),
            ports: self.selection.ports(),
        };
        match Stream::open(&self.query, request, &self.selection) {
            Ok(stream) => self.write(stream, out),
            Err(code) => code,
        }
    }

    fn write(&self, mut stream: Stream<'_>, out: Output) -> ExitCode {
        let begun = out.begin().and_then(|out| PacketFile::begin(BufWriter::new(out), self.snaplen));
        let mut file = match begun {
            Ok(file) => file,
            Err(error) => return self.end(Err(error)),
        };
        let (mut packets, mut refusal) = (0, None);
        let written = loop {
            let flushed = file.flush();
            match stream.next() {
                _ if flushed.is_err() => break flushed,
                Ok(None) => break Ok(()),
                Ok(Some((read, missing))) => {
                    packets += read.len();
                    file.lose(missing);
                    let written = read.iter().try_for_each(|(packet, bytes)| file.write(packet, bytes));
                    if written.is_err() {
                        break written;
                    }
                }
                Err(error) => {
                    refusal = Some(error);
                    break Ok(());
                }
            }
        };
        let code = code_with(self.summarize(packets, stream.losses), self.end(written));
        refusal.map_or(code, |error| complain(&error))
    }

    /// Says what the file has, and what it has not: as JSON beside the file, else on standard error.
    fn summarize(&self, packets: usize, missing: Losses) -> io::Result<()> {
        if !self.query.json {
            // Nothing is left to be said if standard error is closed.
            let _closed = writeln!(io::stderr(), "{packets} packets captured; {}", losses(missing));
            return Ok(());
        }
        let Losses { left_out, lost } = missing;
        let file = self.write.display().to_string();
        let summary = json!({ "file": file, "packets": packets, "left_out": left_out, "lost": lost });
        match self.write == Path::new(STDOUT) {
            true => write_json_line(io::stderr().lock(), &summary),
            false => print_json_line(&summary),
        }
    }

    /// The exit code, once a file's error is said. A reader that has heard enough is none.
    fn end(&self, written: io::Result<()>) -> ExitCode {
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.complain(&error);
                UNREACHABLE.into()
            }
            _ => ExitCode::SUCCESS,
        }
    }

    fn complain(&self, error: &io::Error) {
        // Nothing is left to be said if standard error is closed.
        let _closed = writeln!(io::stderr(), "{}: {error}", self.write.display());
    }
}
