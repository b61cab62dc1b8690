//! As much of Markdown as the rules about documents need.

/// A document's text.
pub(super) struct Document<'a>(pub(super) &'a str);

impl<'a> Document<'a> {
    /// Whether it has a heading with this anchor.
    pub(super) fn has_heading(&self, anchor: &str) -> bool {
        let headings = prose(self.0).filter_map(|(_, line)| line.strip_prefix('#'));
        headings
            .map(|heading| self::anchor(heading.trim_start_matches('#').trim()))
            .any(|found| found == anchor)
    }

    /// The lines of the first fenced block of this kind, with their numbers; none if there is no such block.
    pub(super) fn block(&self, kind: &str) -> Option<Vec<(usize, &'a str)>> {
        let mut lines = numbered(self.0).skip_while(|(_, line)| line.strip_prefix("```") != Some(kind));
        lines.next()?;
        Some(lines.take_while(|(_, line)| !line.starts_with("```")).collect())
    }
}

/// The targets of links, with the numbers of their lines.
pub(super) fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        let rests = line.match_indices("](").map(move |(at, found)| &line[at + found.len()..]);
        rests.filter_map(move |rest| rest.split_once(')').map(|(target, _)| (number, target)))
    })
}

/// What is in backticks, with the numbers of its lines.
pub(super) fn quoted(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text)
        .flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |quoted| (number, quoted)))
}

/// The lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    numbered(text).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(n, line)| (n + 1, line))
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# One's [two](a.md), `three`\n```kind\n`four` [five](b.md)\n```\n[six](c.md#d) `seven`\n";

    #[test]
    fn what_is_fenced_is_no_prose() {
        assert_eq!(targets(TEXT).collect::<Vec<_>>(), [(1, "a.md"), (5, "c.md#d")]);
        assert_eq!(quoted(TEXT).collect::<Vec<_>>(), [(1, "three"), (5, "seven")]);
    }

    #[test]
    fn a_block_is_found_by_its_kind() {
        assert_eq!(Document(TEXT).block("kind"), Some(vec![(3, "`four` [five](b.md)")]));
        assert_eq!(Document(TEXT).block("other"), None);
    }

    #[test]
    fn a_headings_anchor_has_no_punctuation() {
        assert!(Document("## Keys of a bridge's port\n").has_heading("keys-of-a-bridges-port"));
    }
}
