//! Which of the words for ports find none: a misspelt one would look like a port that nothing comes from.

use std::io::{self, Write as _};

use crate::cli::escape::line;

/// The words that no interface is known by, as the agent has said last.
#[derive(Debug, Default)]
pub(super) struct Unmatched(Vec<String>);

impl Unmatched {
    /// Takes over what the agent says, and tells the user on standard error what is new in it.
    pub(super) fn update(&mut self, now: Vec<String>) {
        let lines = changes(&self.0, &now);
        // Nothing is left to be said if standard error is closed.
        let _closed = io::stderr().write_all(lines.as_bytes());
        self.0 = now;
    }
}

/// A line for each word that finds nothing any more or yet, and for each that finds something now.
fn changes(before: &[String], now: &[String]) -> String {
    let gone = now.iter().filter(|word| !before.contains(word));
    let gone =
        gone.map(|word| line(&format!("no port is {word} now: its packets are told once there is one")));
    let come = before.iter().filter(|word| !now.contains(word));
    gone.chain(come.map(|word| line(&format!("there is a port {word} now")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_named_once_when_it_finds_nothing_and_once_when_it_does() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let (both, one) = (words(&["web", "team/shop"]), words(&["team/shop"]));
        let first = changes(&[], &both);
        assert_eq!(first.lines().count(), 2);
        assert!(first.starts_with("no port is web now: "), "{first}");
        assert_eq!(changes(&both, &both), "");
        assert_eq!(changes(&both, &one), "there is a port web now\n");
        assert!(changes(&one, &both).starts_with("no port is web now: "));
    }
}
