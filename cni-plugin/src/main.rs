//! The executable; everything is in the library.

use std::io::{Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use dlmalloc::GlobalDlmalloc;
use shunt::Reply;

/// musl's own gives memory back to the kernel with almost every buffer that is let go, and asks for it again with the next: of an ADD
/// those were sixty mappings, each with its page faults. This one keeps what a call of milliseconds will want again.
#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;

fn main() -> ExitCode {
    let program = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let (written, code) = match shunt::run(&program, |name| std::env::var_os(name), stdin().lock()) {
        Reply::Done(text) => (stdout().write_all(text.as_bytes()), ExitCode::SUCCESS),
        Reply::Failed(text) => (stdout().write_all(text.as_bytes()), ExitCode::FAILURE),
        Reply::About => (stderr().write_all(shunt::ABOUT.as_bytes()), ExitCode::SUCCESS),
    };
    if written.is_ok() { code } else { ExitCode::FAILURE }
}
