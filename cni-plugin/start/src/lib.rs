//! How the plugin's process begins: the C library calls its `main`, and not the standard library's.
//!
//! What the standard library does before `main` and after it is for programs that run for long. It gives the thread a second stack, on which
//! to say that the first one has overflowed, and takes it away at the end: of a call of a millisecond that was a twentieth. What of it a call does need
//! is here: standard streams that are open, and an error in place of a signal where nobody reads the answer.
//!
//! This is a crate of its own because a function that C calls takes `unsafe`, and the plugin forbids itself any.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::fs::OpenOptions;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt as _;

use nix::libc::{POLLNVAL, SIG_IGN, SIGPIPE, nfds_t, poll, pollfd, signal};

/// Has the process begin with a function, which gets the name under which the program was called and answers the exit code.
#[macro_export]
macro_rules! begin_with {
    ($function:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn main(
            count: ::core::ffi::c_int,
            arguments: *const *const ::core::ffi::c_char,
        ) -> ::core::ffi::c_int {
            $crate::prepare();
            // SAFETY: they are the C library's.
            $function(unsafe { $crate::name(count, arguments) })
        }
    };
}

/// Sees to it that the three standard streams are open, or what is opened next would be taken for one of them; and that a write to a pipe
/// without a reader fails, and does not end the process.
pub fn prepare() {
    let mut streams = [0, 1, 2].map(|fd| pollfd { fd, events: 0, revents: 0 });
    // SAFETY: the kernel writes what it has to say into as many as there are, and does not wait.
    if unsafe { poll(streams.as_mut_ptr(), streams.len() as nfds_t, 0) } > 0 {
        for _closed in streams.iter().filter(|stream| stream.revents & POLLNVAL != 0) {
            // It gets the lowest number that is free, which is that of the first that is closed.
            let nothing = OpenOptions::new().read(true).write(true).open("/dev/null");
            let _stays_open = nothing.map(IntoRawFd::into_raw_fd);
        }
    }
    // SAFETY: nothing is run when the signal comes.
    let _cannot_fail = unsafe { signal(SIGPIPE, SIG_IGN) };
}

/// The name under which the program was called; empty if its caller gave it none.
///
/// # Safety
/// They are what the C library calls `main` with.
pub unsafe fn name(count: c_int, arguments: *const *const c_char) -> OsString {
    if count < 1 {
        return OsString::new();
    }
    // SAFETY: there is at least one.
    let name = unsafe { CStr::from_ptr(*arguments) };
    OsStr::from_bytes(name.to_bytes()).to_owned()
}
