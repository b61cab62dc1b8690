//! The executable; everything is in the library.

#![no_main]

use std::ffi::{OsString, c_int};
use std::io::{Write, stderr, stdin, stdout};
use std::path::Path;

use shunt::Reply;
use shunt_copies as _;
use shunt_heap::Heap;

#[global_allocator]
static HEAP: Heap = Heap::new();

shunt_start::begin_with!(call);

/// Answers one call, made by this name, and says how the process is to end.
fn call(program: OsString) -> c_int {
    let (written, code) = match shunt::run(Path::new(&program), |name| std::env::var_os(name), stdin().lock())
    {
        Reply::Done(text) => (answer(&text), 0),
        Reply::Failed(text) => (answer(&text), 1),
        Reply::About => (stderr().write_all(shunt::ABOUT.as_bytes()), 0),
    };
    if written.is_ok() { code } else { 1 }
}

fn answer(text: &str) -> std::io::Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
