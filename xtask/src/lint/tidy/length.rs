//! A file is one idea: 250 lines are long, and more than 400 are too long.

use super::{Finding, Source};

const LONG: usize = 250;
const TOO_LONG: usize = 400;

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

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn four_hundred_lines_are_long_and_one_more_is_too_long() {
        let allowed = source("a.rs", &"\n".repeat(400));
        assert!(too_long(&allowed).is_empty());
        assert_eq!(long(&allowed).len(), 1);
        assert_eq!(too_long(&source("a.rs", &"\n".repeat(401))).len(), 1);
    }
}
