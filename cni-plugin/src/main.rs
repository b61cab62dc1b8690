//! The executable; everything is in the library.

use std::io::{Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use shunt::Reply;
use shunt_heap::Heap;

#[global_allocator]
static HEAP: Heap = Heap::new();

fn main() -> ExitCode {
    let program = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let (written, code) = match shunt::run(&program, |name| std::env::var_os(name), stdin().lock()) {
        Reply::Done(text) => (stdout().write_all(text.as_bytes()), ExitCode::SUCCESS),
        Reply::Failed(text) => (stdout().write_all(text.as_bytes()), ExitCode::FAILURE),
        Reply::About => (stderr().write_all(shunt::ABOUT.as_bytes()), ExitCode::SUCCESS),
    };
    if written.is_ok() { code } else { ExitCode::FAILURE }
}
