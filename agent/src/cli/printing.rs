//! How answers are printed, and what becomes of one that cannot be. JSON is of ASCII only: a terminal obeys nothing in it.

use std::fmt::{Display, Write as _};
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
    let mut out = Ascii(BufWriter::new(out));
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
    let mut out = Ascii(BufWriter::new(out));
    serde_json::to_writer(&mut out, answer)?;
    writeln!(out)?;
    out.flush()
}

/// Escapes what JSON leaves as it is in texts, as JSON has it (RFC 8259 section 7). serde_json writes each text in whole characters.
struct Ascii<W>(W);

impl<W: Write> Write for Ascii<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = |byte: &u8| byte.is_ascii() && *byte != 0x7f;
        let text = match str::from_utf8(bytes) {
            Ok(text) if !bytes.iter().all(is_plain) => text,
            _ => return self.0.write(bytes),
        };
        let mut escaped = String::with_capacity(2 * text.len());
        for c in text.chars() {
            if c.is_ascii() && c != '\u{7f}' {
                escaped.push(c);
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a text does not fail.
                let _written = write!(escaped, "\\u{unit:04x}");
            }
        }
        self.0.write_all(escaped.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
            complain(format_args!("the answer cannot be printed: {error}"));
            UNREACHABLE.into()
        }
        _ => verdict,
    }
}

/// Says on standard error what is wrong. Nothing is left to be said if that is closed.
pub(super) fn complain(what: impl Display) {
    let _closed = writeln!(io::stderr(), "shunt-agent: {what}");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_is_one_of_printable_ascii_and_says_what_it_said() {
        let answer =
            json!({ "pod": "web\u{1b}[2J\n\u{7f}\u{9b}1m\u{202e}", "name \u{1f980}": ["é", "plain"] });
        let [mut pretty, mut line] = [Vec::new(), Vec::new()];
        write_json(&mut pretty, &answer).unwrap();
        write_json_line(&mut line, &answer).unwrap();
        for written in [pretty, line] {
            let is_shown = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
            assert!(written.iter().all(is_shown), "{:?}", String::from_utf8_lossy(&written));
            assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), answer);
        }
    }
}
