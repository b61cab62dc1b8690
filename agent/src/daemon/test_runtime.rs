//! A runtime of its own for a test of what the daemon does in one.

/// Does `work` to its end.
pub(super) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
