//! The script for the linker: `.text.hot`, in which functions lie in a given order, before the rest of the text.
//!
//! What of a name changes with each compiler and each build is left open. A function whose name has changed otherwise lies with
//! the rest, and nothing else is wrong.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The C library, of which an ADD runs much and some is in sections without names. All of what is linked of it is half a window of the
/// kernel's. Where Rust brings it along it is in the archive of the crate `libc`.
const C_LIBRARY: &str =
    "    *crt1.o(.text)\n    *liblibc-*.rlib:*(.text .text.*)\n    *libc.a:*(.text .text.*)\n";

/// With what the second thread begins, which is not stepped through.
const SECOND_THREAD: &str = "    *(.text._RINvNtCs*_12shunt_beside16borrowing_thread3run*)\n";

/// Orders the functions of these names.
pub(crate) fn write<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut known = BTreeSet::new();
    let mut text = String::from(
        "/* What a usual ADD and DEL run, in the order in which they run it. Written by `cargo xtask hot-text`. */\n\
         SECTIONS\n{\n  .text.hot :\n  {\n",
    );
    text.push_str(C_LIBRARY);
    text.push_str(SECOND_THREAD);
    for pattern in names.map(pattern) {
        if known.insert(pattern.clone()) {
            // What is said to be cold has sections of another name.
            let sections =
                ["", "unlikely."].map(|kind| format!(".text.{kind}{pattern} .text.{kind}{pattern}.*"));
            let _infallible = writeln!(text, "    *({})", sections.join(" "));
        }
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    text
}

/// A symbol's name without what another build would change: the number that the compiler gives to one of several of a name, the crate for
/// which a generic function was compiled, and the hashes of crates (RFC 2603).
fn pattern(name: &str) -> String {
    let name = match name.rsplit_once('.') {
        Some((name, number)) if number.chars().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    };
    if !name.starts_with("_R") {
        return name.to_owned();
    }
    match instantiating_crate(name) {
        Some(before) => format!("{}*", without_crate_hashes(before)),
        None => without_crate_hashes(name),
    }
}

/// What stands before the crate at a name's end, if there is one.
fn instantiating_crate(name: &str) -> Option<&str> {
    let (before, last) = name.rsplit_once("Cs")?;
    let (_, identifier) = last.split_once('_')?;
    let digits = identifier.find(|digit: char| !digit.is_ascii_digit())?;
    let (length, identifier) = identifier.split_at(digits);
    let is_all = length.parse() == Ok(identifier.len()) || length.parse() == Ok(identifier.len() - 1);
    is_all.then_some(before)
}

/// A crate is `Cs`, a number of base 62, `_`, and its name.
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
    fn what_another_build_would_change_is_left_open_and_nothing_else() {
        for (name, wanted) in [
            ("_RNvNtCsj4CZ6flxxfE_3std2io5stdin", "_RNvNtCs*_3std2io5stdin"),
            ("_RNvNtCsj4CZ6flxxfE_3std2io5stdin.159", "_RNvNtCs*_3std2io5stdin"),
            (
                "_RINvNtCsj4C_4core3ptr4dropNtCs1_5alloc6StringE",
                "_RINvNtCs*_4core3ptr4dropNtCs*_5alloc6StringE",
            ),
            (
                "_RINvNtCsj4C_4core3ptr4dropNtCs1_5alloc6StringECs8w_5shunt",
                "_RINvNtCs*_4core3ptr4dropNtCs*_5alloc6StringE*",
            ),
            (
                "_RINvCsj_4core4dropmECs2n_15shunt_agent_api.llvm",
                "_RINvCs*_4core4dropmECs*_15shunt_agent_api.llvm",
            ),
            ("_RNvCsj_5shunt4main", "_RNvCs*_5shunt4main"),
            ("_RNvCs.x", "_RNvCs.x"),
            ("memcpy", "memcpy"),
            ("dummy.7", "dummy"),
        ] {
            assert_eq!(pattern(name), wanted);
        }
    }

    #[test]
    fn each_pattern_is_there_once_behind_the_c_library_and_the_second_threads_beginning() {
        let text = write(["memcpy", "_RNvCs1_1a1b", "_RNvCs2_1a1b.3"].into_iter());
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("    *")).map(str::trim).collect();
        let [_, _, _, thread, first, second] = lines[..] else { panic!("{text}") };
        assert!(thread.ends_with("borrowing_thread3run*)"));
        assert_eq!(first, "*(.text.memcpy .text.memcpy.* .text.unlikely.memcpy .text.unlikely.memcpy.*)");
        assert!(second.starts_with("*(.text._RNvCs*_1a1b .text._RNvCs*_1a1b.* "));
        assert!(text.trim_end().ends_with("INSERT BEFORE .text;"));
    }
}
