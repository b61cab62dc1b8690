//! The script for the linker: `.text.hot`, in which functions lie in a given order, before the rest of the text.
//!
//! A name's hashes change with each compiler and each release of a library, so the script leaves them open. A function whose name has
//! changed otherwise lies with the rest, and nothing else is wrong.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Orders the functions of these names.
pub(crate) fn write<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut known = BTreeSet::new();
    let mut text = String::from(
        "/* What a usual ADD and DEL run, in the order in which they run it. Written by `cargo xtask hot-text`. */\n\
         SECTIONS\n{\n  .text.hot :\n  {\n",
    );
    for pattern in names.map(pattern) {
        if known.insert(pattern.clone()) {
            let _infallible = writeln!(text, "    *(.text.{pattern})");
        }
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    text
}

/// A symbol's name without what a build of its own would change.
fn pattern(name: &str) -> String {
    match name.strip_prefix("_R") {
        Some(name) => format!("_R{}", without_crate_hashes(name)),
        None => without_function_hash(name),
    }
}

/// The older way of mangling ends in `17h`, sixteen digits and `E`, behind which the compiler may have put more.
fn without_function_hash(name: &str) -> String {
    const DIGITS: usize = 16;
    let hash = name.rfind("17h").map(|at| name.split_at(at + 3));
    match hash {
        Some((before, hash)) if hash.get(DIGITS..).is_some_and(|rest| rest.starts_with('E')) => {
            format!("{before}*")
        }
        _ => name.to_owned(),
    }
}

/// The newer one says which crate is meant by `Cs`, a number of base 62, and `_` (RFC 2603, "Crate root").
fn without_crate_hashes(name: &str) -> String {
    let mut pieces = name.split("Cs");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('_') {
            Some((number, rest)) if number.chars().all(|digit| digit.is_ascii_alphanumeric()) => {
                text.push_str("Cs*_");
                text.push_str(rest);
            }
            _ => {
                text.push_str("Cs");
                text.push_str(piece);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_left_open_and_nothing_else() {
        for (name, wanted) in [
            ("_ZN5shunt6attach4make17h0123456789abcdefE", "_ZN5shunt6attach4make17h*"),
            ("_ZN5shunt6attach4make17h0123456789abcdefE.llvm.77", "_ZN5shunt6attach4make17h*"),
            ("_RNvNtCsj4CZ6flxxfE_3std2io5stdin", "_RNvNtCs*_3std2io5stdin"),
            (
                "_RINvNtCsj4CZ6flxxfE_4core3ptr4dropNtCs1_5alloc6StringE",
                "_RINvNtCs*_4core3ptr4dropNtCs*_5alloc6StringE",
            ),
            ("_RNvCs.x", "_RNvCs.x"),
            ("memcpy", "memcpy"),
            ("a17hb", "a17hb"),
        ] {
            assert_eq!(pattern(name), wanted);
        }
    }

    #[test]
    fn each_pattern_is_there_once() {
        let names = ["_ZN1a17h0123456789abcdefE", "memcpy", "_ZN1a17hfedcba9876543210E"];
        let text = write(names.into_iter());
        let lines: Vec<_> = text.lines().filter(|line| line.contains("*(")).map(str::trim).collect();
        assert_eq!(lines, ["*(.text._ZN1a17h*)", "*(.text.memcpy)"]);
        assert!(text.trim_end().ends_with("INSERT BEFORE .text;"));
    }
}
