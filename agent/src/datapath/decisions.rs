//! Logs the decisions of the programs' debug build.
//!
//! The shipped programs have no log map. An agent with the debug build is built with `SHUNT_BPF_OBJECT=target/bpf/shunt-decisions.o`
//! and logs with `RUST_LOG=debug`.

use std::os::fd::AsFd as _;
use std::{io, thread};

use aya::Ebpf;
use aya_log::{EbpfLogger, Error};
use log::{Log, Metadata, Record};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shunt_dataplane::{DropReason, PassReason};

/// aya-log's map.
pub const MAP: &str = "AYA_LOGS";

/// One program's decision on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// The interface that the program runs on.
    pub ifindex: u32,
    /// The verdict: `pass`, `drop`, `flood`, or a kind of delivery.
    pub verdict: &'static str,
    /// The target interface, or the number of copies; 0 without a target.
    pub target: u32,
    /// The deciding stage, if any.
    pub stage: &'static str,
    /// The reason, by its name in reports.
    pub reason: &'static str,
}

impl Said {
    /// Reads the interface's index, then the decision as [`shunt_dataplane::abi::Decision`] has it, in decimal.
    pub fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|number| number.parse::<u32>().ok());
        let mut next = || numbers.next().flatten();
        let (ifindex, code, target, number) = (next()?, next()?, next()?, next()?);
        Self::of(ifindex, code, target, number)
    }

    /// The names of a decision's numbers.
    pub fn of(ifindex: u32, code: u32, target: u32, number: u32) -> Option<Self> {
        let verdict = ["pass", "drop", "peer", "port", "neighbor", "flood", "wire", "into", "back", "onward"]
            .get(code as usize)?;
        let (stage, reason) = match code {
            0 => PassReason::from_number(number).map(|reason| (reason.stage().name(), reason.name()))?,
            1 | 8 => DropReason::from_number(number).map(|reason| (reason.stage().name(), reason.name()))?,
            _ => ("", ""),
        };
        Some(Self { ifindex, verdict, target, stage, reason })
    }
}

/// Logs the programs' messages at level `debug`, from a thread of its own. The shipped programs have none.
pub fn follow(ebpf: &mut Ebpf) {
    let begun = match listen(ebpf, Teller) {
        Ok(None) => return,
        Ok(Some(logger)) => thread::Builder::new().name("decisions".into()).spawn(|| tell(logger)),
        Err(error) => Err(io::Error::other(error)),
    };
    if let Err(error) = begun {
        tracing::warn!(%error, "the programs' decisions are not logged");
    }
}

/// What reads for `logger`; `None` for the shipped programs.
///
/// # Errors
/// aya's word: there is a map of the name, and it is no ring buffer.
pub fn listen<T: Log>(ebpf: &mut Ebpf, logger: T) -> Result<Option<EbpfLogger<T>>, Error> {
    match EbpfLogger::init_with_logger(ebpf, logger) {
        Err(Error::MapNotFound) => Ok(None),
        read => read.map(Some),
    }
}

fn tell(mut logger: EbpfLogger<Teller>) {
    loop {
        logger.flush();
        let mut readable = [PollFd::new(logger.as_fd(), PollFlags::POLLIN)];
        match poll(&mut readable, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return tracing::warn!(%error, "the programs' decisions are no longer logged"),
        }
    }
}

struct Teller;

impl Log for Teller {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        match Said::read(&text) {
            Some(Said { ifindex, verdict, target, stage, reason }) => {
                tracing::debug!(ifindex, verdict, target, stage, reason, "decided");
            }
            None => tracing::debug!(text, "program log"),
        }
    }

    fn flush(&self) {}
}
