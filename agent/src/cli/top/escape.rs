//! Text of others' for a terminal: names and messages may hold anything that a runtime or a peer has put there.

/// The longest text that is looked at; a terminal's line is shorter.
const LONGEST: usize = 512;

/// Printable ASCII as it is, all else escaped: no control sequence, no character of unknown width, no reversed direction.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len().min(LONGEST));
    for c in text.chars().take(LONGEST) {
        match c {
            ' '..='~' => escaped.push(c),
            other => escaped.extend(other.escape_default()),
        }
    }
    escaped
}

/// The text in `width` characters at most; `~` stands for what is cut off its end. Takes what [`escape`] gives.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.len() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { kept } else { kept + "~" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_speak_to_the_terminal_is_escaped() {
        assert_eq!(escape("team/web-0"), "team/web-0");
        assert_eq!(escape("\u{1b}]0;title\u{7}\n\t\u{7f}"), "\\u{1b}]0;title\\u{7}\\n\\t\\u{7f}");
        assert_eq!(escape("\u{9b}31m\u{202e}gpj\u{200b}名"), "\\u{9b}31m\\u{202e}gpj\\u{200b}\\u{540d}");
        assert!(escape(&"\u{1b}".repeat(100_000)).len() <= LONGEST * "\\u{1b}".len());
    }

    #[test]
    fn a_long_text_ends_in_a_mark() {
        for (width, text) in [(0, ""), (1, "~"), (4, "nam~"), (5, "names"), (9, "names")] {
            assert_eq!(cut("names", width), text);
        }
    }
}
