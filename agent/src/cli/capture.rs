//! `shunt-agent capture`: the packets themselves, with what became of them.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use shunt_agent_api::WatchRequest;

use super::exit::{UNREACHABLE, USAGE};
use super::query::{Query, code_of, complain};
use super::watch::{PacketFile, Selection, Stream, losses};

/// The most bytes of a packet (`MAX_SNAP` of the programs).
const MOST: u32 = shunt_dataplane::abi::watch::MAX_SNAP;

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
        let out = match open(&self.write) {
            Ok(Some(out)) => out,
            Ok(None) => {
                let _closed = writeln!(io::stderr(), "packets are not for a terminal: | tcpdump -r -");
                return USAGE.into();
            }
            Err(error) => {
                let _closed = writeln!(io::stderr(), "{}: {error}", self.write.display());
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

    fn write(&self, mut stream: Stream<'_>, out: Box<dyn Write>) -> ExitCode {
        let mut packets = 0;
        let mut file = match PacketFile::begin(BufWriter::new(out), self.snaplen) {
            Ok(file) => file,
            Err(error) => return code_of(Err(error)),
        };
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
                Err(error) => return complain(&error),
            }
        };
        let _closed = writeln!(io::stderr(), "{packets} packets captured; {}", losses(stream.losses));
        code_of(written)
    }
}

/// Packets are others' data: the file is for its owner only. None for a terminal.
fn open(path: &Path) -> io::Result<Option<Box<dyn Write>>> {
    if path != Path::new("-") {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        return Ok(Some(Box::new(file)));
    }
    let out = io::stdout();
    Ok(if out.is_terminal() { None } else { Some(Box::new(out)) })
}
