//! The executable; everything is in the library.

use std::io::{Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use dlmalloc::GlobalDlmalloc;
use shunt::Reply;

/// The C library's allocator that the plugin is linked with (musl) gives memory back to the kernel at every free.
#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;

fn main() -> ExitCode {
    // A runtime that gives no name calls the plugin by none of its names.
    let mut words = std::env::args_os();
    let program = PathBuf::from(words.next().unwrap_or_default());
    let words: Vec<_> = words.collect();
    let reply = shunt::run_by(&program, &words, |name| std::env::var_os(name), stdin().lock());
    let (written, code) = match reply {
        Reply::Done(text) => (print(&text), ExitCode::SUCCESS),
        Reply::Failed(text) => (print(&text), ExitCode::FAILURE),
        Reply::About => (stderr().write_all(shunt::ABOUT.as_bytes()), ExitCode::SUCCESS),
    };
    if written.is_ok() { code } else { ExitCode::FAILURE }
}

fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
