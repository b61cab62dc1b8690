//! A file is one idea: 250 lines are long, and more than 350 are too long. A function fits a screen.

use super::finding::Finding;
use super::source::Source;

const LONG: usize = 250;
const TOO_LONG: usize = 350;
/// The lines of a screen.
const SCREEN: usize = 50;

/// What is shipped, and what builds it; a test or a benchmark may tell a long story.
const SHIPPED: [&str; 9] = [
    "agent/api/src/",
    "agent/netlink/src/",
    "agent/src/",
    "cni-plugin/src/",
    "deploy/src/",
    "ebpf/src/",
    "leases/src/",
    "regular-file/src/",
    "xtask/src/",
];

pub(super) fn long(sources: &[Source]) -> Vec<Finding> {
    rust_files(sources, |lines| lines > LONG && lines <= TOO_LONG)
}

pub(super) fn too_long(sources: &[Source]) -> Vec<Finding> {
    rust_files(sources, |lines| lines > TOO_LONG)
}

fn rust_files(sources: &[Source], concerns: impl Fn(usize) -> bool) -> Vec<Finding> {
    let counted =
        sources.iter().filter(|source| source.is_rust()).map(|source| (source, source.text.lines().count()));
    let found = counted.filter(|(_, lines)| concerns(*lines));
    found.map(|(source, lines)| Finding::in_file(source, format!("{lines} lines; is it one idea?"))).collect()
}

/// Functions that do not fit a screen, from the line with their name to their closing brace, as rustfmt writes them.
pub(super) fn over_a_screen(sources: &[Source]) -> Vec<Finding> {
    let is_shipped = |source: &&Source| {
        SHIPPED.iter().any(|folder| source.path.starts_with(folder)) && !source.path.ends_with("_tests.rs")
    };
    sources.iter().filter(|source| source.is_rust()).filter(is_shipped).flat_map(in_source).collect()
}

fn in_source(source: &Source) -> Vec<Finding> {
    let text = source.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let Some(name) = function(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| line.strip_prefix(indent) == Some("}");
        let length = lines[begin..].iter().position(is_end).map_or(1, |end| end + 1);
        // A declaration, or a function of one line.
        if line.ends_with([';', '}']) || length <= SCREEN {
            continue;
        }
        let message = format!("`{name}` has {length} lines, a screen {SCREEN}: which steps has it?");
        findings.push(Finding::at(source, begin + 1, message));
    }
    findings
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    const BEFORE: [&str; 5] = ["const", "async", "unsafe", "extern", "pub"];
    let (before, after) = line.split_once("fn ")?;
    let is_before = |word: &str| {
        BEFORE.contains(&word) || word.starts_with("pub(") || word.starts_with('"') || word == "super)"
    };
    let name = after.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
    before.split_whitespace().all(is_before).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    fn function_of(lines: usize) -> String {
        format!(
            "impl A {{\n    pub(super) async fn long(\n{}    }}\n}}\n",
            "        step();\n".repeat(lines - 2)
        )
    }

    #[test]
    fn a_function_fits_a_screen_and_the_next_line_does_not() {
        assert!(over_a_screen(&source("agent/src/a.rs", &function_of(50))).is_empty());
        let findings = over_a_screen(&source("agent/src/a.rs", &function_of(51)));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "agent/src/a.rs:2");
        assert!(findings[0].message.contains("`long` has 51 lines"), "{}", findings[0].message);
    }

    #[test]
    fn tests_and_benchmarks_may_tell_a_long_story() {
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function_of(90));
        for (path, text) in [
            ("agent/src/a.rs", &test),
            ("agent/tests/a.rs", &function_of(90)),
            ("agent/src/a_tests.rs", &function_of(90)),
            ("bench/src/a.rs", &function_of(90)),
        ] {
            assert!(over_a_screen(&source(path, text)).is_empty(), "{path}");
        }
    }

    #[test]
    fn four_hundred_lines_are_long_and_one_more_is_too_long() {
        let allowed = source("a.rs", &"\n".repeat(350));
        assert!(too_long(&allowed).is_empty());
        assert_eq!(long(&allowed).len(), 1);
        assert_eq!(too_long(&source("a.rs", &"\n".repeat(351))).len(), 1);
    }
}
