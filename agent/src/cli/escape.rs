//! Text of others' for a terminal: names and messages may hold anything that a runtime, a peer or somebody's rule has put there.

/// Printable ASCII as it is, all else escaped: no control sequence, no character of unknown width, no reversed direction. Of what is
/// escaped already nothing changes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => escaped.push(c),
            other => escaped.extend(other.escape_default()),
        }
    }
    escaped
}

/// The same as a line, which no newline in it ends early.
pub(super) fn line(text: &str) -> String {
    escape(text) + "\n"
}

/// The same of each line of a text that has several.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_speak_to_the_terminal_is_escaped() {
        assert_eq!(escape("team/web-0"), "team/web-0");
        assert_eq!(escape("\u{1b}]0;title\u{7}\n\t\u{7f}"), "\\u{1b}]0;title\\u{7}\\n\\t\\u{7f}");
        assert_eq!(escape("\u{9b}31m\u{202e}gpj\u{200b}名"), "\\u{9b}31m\\u{202e}gpj\\u{200b}\\u{540d}");
        assert_eq!(escape(&escape("\u{1b}\n")), escape("\u{1b}\n"));
        assert_eq!(line("one\ntwo"), "one\\ntwo\n");
        assert_eq!(lines("one\n\u{1b}two"), "one\n\\u{1b}two\n");
    }
}
