//! Text of others' for a screen: escaped, and no longer than there is room for.

use crate::cli::escape::escape as escape_all;

/// The longest text that is looked at; a terminal's line is shorter.
const LONGEST: usize = 512;

/// The beginning of a text, escaped as everywhere on the command line.
pub(super) fn escape(text: &str) -> String {
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
    escape_all(&text[..end])
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
    fn a_name_is_escaped_and_a_long_one_is_not_looked_at_to_its_end() {
        assert_eq!(escape("team/web-0"), "team/web-0");
        assert_eq!(escape("\u{1b}]0;名"), "\\u{1b}]0;\\u{540d}");
        assert_eq!(escape(&"\u{9b}".repeat(100_000)), "\\u{9b}".repeat(LONGEST));
    }

    #[test]
    fn a_long_text_ends_in_a_mark() {
        for (width, text) in [(0, ""), (1, "~"), (4, "nam~"), (5, "names"), (9, "names")] {
            assert_eq!(cut("names", width), text);
        }
    }
}
