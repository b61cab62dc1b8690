use std::io::{ErrorKind, Result};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::patience;

/// How long a socket may outlive its closing.
const LINGERING: Duration = Duration::from_secs(2);

/// Between two attempts.
const TICK: Duration = Duration::from_millis(20);

/// Binds a socket, once the one that had the address before is gone.
///
/// A process that another thread starts has a copy of every socket of this one until it executes its program: one that has just been
/// closed may be there for a moment yet.
///
/// # Errors
/// Every one of the call's; `AddrInUse` when the address is still in use after a while.
pub fn once_free<T>(mut bind: impl FnMut() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        match bind() {
            Err(error) if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < patience(LINGERING) => {
                sleep(TICK);
            }
            bound => return bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn what_is_closed_in_a_moment_is_waited_for_and_no_other_error_is() {
        let before = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = before.local_addr().unwrap();
        let closing = thread::spawn(move || {
            sleep(TICK * 3);
            drop(before);
        });
        assert_eq!(once_free(|| TcpListener::bind(at)).unwrap().local_addr().unwrap(), at);
        closing.join().unwrap();
        let mut calls = 0;
        let failed = once_free(|| -> Result<()> {
            calls += 1;
            Err(ErrorKind::AddrNotAvailable.into())
        });
        assert_eq!((failed.unwrap_err().kind(), calls), (ErrorKind::AddrNotAvailable, 1));
    }
}
