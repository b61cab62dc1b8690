//! How answers are printed, and what becomes of one that cannot be.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::exit::UNREACHABLE;

/// Prints an answer as JSON that people can read, too.
pub(super) fn print_json<T: Serialize>(answer: &T) -> io::Result<()> {
    write_json(io::stdout().lock(), answer)
}

/// The same for another place than standard output.
pub(super) fn write_json<T: Serialize>(out: impl Write, answer: &T) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, answer)?;
    writeln!(out)?;
    out.flush()
}

/// Prints one of many answers: JSON in one line.
pub(super) fn print_json_line<T: Serialize>(answer: &T) -> io::Result<()> {
    write_json_line(io::stdout().lock(), answer)
}

/// The same for another place than standard output.
pub(super) fn write_json_line<T: Serialize>(out: impl Write, answer: &T) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, answer)?;
    writeln!(out)?;
    out.flush()
}

/// Prints whole lines.
pub(super) fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The exit code of what was printed: success, if it could be.
pub(super) fn code_of(printed: io::Result<()>) -> ExitCode {
    code_with(printed, ExitCode::SUCCESS)
}

/// The exit code of a verdict; 1 where it could not be printed, once it is said why. A reader that has heard enough (`| head`) is no failure.
pub(super) fn code_with(printed: io::Result<()>, verdict: ExitCode) -> ExitCode {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            // Nothing is left to be said if standard error is closed.
            let _closed = writeln!(io::stderr(), "shunt-agent: the answer cannot be printed: {error}");
            UNREACHABLE.into()
        }
        _ => verdict,
    }
}
