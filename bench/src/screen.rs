//! What a person sees: colours on a terminal only, columns by what is seen and not by bytes, bars of eighths.

use std::io::{IsTerminal, Stdout, Write, stdout};
use std::time::Duration;

use anyhow::{Context, Result};

/// How a piece of text is painted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    /// A heading.
    Bold,
    /// Less important.
    Dim,
    /// What went well; shunt's own row.
    Good,
    /// What did not.
    Bad,
}

impl Paint {
    /// `text` between this paint's escapes; [`Screen`] takes them out again where there is no terminal.
    pub(crate) fn on(self, text: &str) -> String {
        let code = match self {
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Good => 32,
            Self::Bad => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Standard output.
pub(crate) struct Screen {
    out: Stdout,
    terminal: bool,
    colour: bool,
}

impl Screen {
    /// Finds out what standard output is. `NO_COLOR` is heeded (no-color.org).
    pub(crate) fn open() -> Self {
        let out = stdout();
        let terminal = out.is_terminal();
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { out, terminal, colour }
    }

    /// Prints a line.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        let text = if self.colour { text.to_owned() } else { plain(text) };
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        writeln!(self.out, "{clear}{text}").context("write to standard output")
    }

    /// Prints a heading with an empty line before it.
    ///
    /// # Errors
    /// As [`Screen::line`].
    pub(crate) fn heading(&mut self, text: &str, aside: &str) -> Result<()> {
        self.line("")?;
        self.line(&format!("  {}  {}", Paint::Bold.on(text), Paint::Dim.on(aside)))
    }

    /// Prints a step that went well.
    ///
    /// # Errors
    /// As [`Screen::line`].
    pub(crate) fn done(&mut self, text: &str) -> Result<()> {
        self.line(&format!("  {} {text}", Paint::Good.on("✓")))
    }

    /// Prints a step that did not go well.
    ///
    /// # Errors
    /// As [`Screen::line`].
    pub(crate) fn failed(&mut self, text: &str) -> Result<()> {
        self.line(&format!("  {} {text}", Paint::Bad.on("✗")))
    }

    /// Shows what is going on, how much of it is done and how long the rest may take, until the next line is printed; on
    /// a terminal only.
    pub(crate) fn progress(&mut self, done: f64, text: &str, left: Option<Duration>) {
        if self.terminal {
            let left = left.map_or_else(String::new, |left| format!("  {} s left", left.as_secs() + 1));
            let text = format!("{} {text}{left}", bar(done, 20));
            let text = if self.colour { Paint::Dim.on(&text) } else { text };
            // A progress line that cannot be shown is no loss.
            write!(self.out, "\r\x1b[K  {text}").and_then(|()| self.out.flush()).ok();
        }
    }
}

/// A bar of `fraction` of `width` columns.
pub(crate) fn bar(fraction: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    pad(&format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]), width)
}

/// `text`, filled with spaces to `width` columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let seen = plain(text).chars().count();
    format!("{text}{}", " ".repeat(width.saturating_sub(seen)))
}

/// `text` at the right of `width` columns.
pub(crate) fn right(text: &str, width: usize) -> String {
    let seen = plain(text).chars().count();
    format!("{}{text}", " ".repeat(width.saturating_sub(seen)))
}

/// A number with its thousands set apart.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_takes_no_columns() {
        assert_eq!(plain(&pad(&Paint::Good.on("ab"), 4)), "ab  ");
        assert_eq!(plain(&right(&Paint::Bad.on("ab"), 4)), "  ab");
    }

    #[test]
    fn a_bar_is_as_wide_as_it_is_told() {
        for fraction in [-1.0, 0.0, 0.37, 0.5, 1.0, 7.0] {
            assert_eq!(bar(fraction, 10).chars().count(), 10);
        }
        assert_eq!(bar(0.5, 4), "██  ");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(123_456), "123,456");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
