use std::io::{ErrorKind, Result};

/// Calls until the call was not interrupted.
///
/// A read from a socket that has a timeout ends with `EINTR` when its process was stopped and went on, whether it
/// handles signals or not (signal(7)), and the standard library repeats such a read only in its own loops, as
/// `read_exact` is one. A machine that is frozen for a moment is no failure of what is measured or tested.
///
/// # Errors
/// Every other of the call's.
pub fn uninterrupted<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_repeated_and_a_failed_one_is_not() {
        let mut answers = [Err(ErrorKind::Interrupted), Err(ErrorKind::Interrupted), Ok(7)].into_iter();
        assert_eq!(uninterrupted(|| answers.next().unwrap().map_err(Into::into)).unwrap(), 7);
        let mut calls = 0;
        let failed = uninterrupted(|| -> Result<()> {
            calls += 1;
            Err(ErrorKind::WouldBlock.into())
        });
        assert_eq!((failed.unwrap_err().kind(), calls), (ErrorKind::WouldBlock, 1));
    }
}
