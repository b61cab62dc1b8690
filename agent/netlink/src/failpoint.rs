//! Where tests make requests fail: a function that is called before each of them, and whose error stands for the kernel's.

use std::io;
use std::sync::OnceLock;

static BEFORE_REQUESTS: OnceLock<fn() -> io::Result<()>> = OnceLock::new();

/// Has every request of this process ask `pass` first. The first caller's function stays.
pub fn install(pass: fn() -> io::Result<()>) {
    let _ = BEFORE_REQUESTS.set(pass);
}

pub(crate) fn pass() -> io::Result<()> {
    BEFORE_REQUESTS.get().map_or(Ok(()), |pass| pass())
}
