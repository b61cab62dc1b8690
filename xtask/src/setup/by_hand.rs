//! What a person can do instead of an installation that failed.

use anyhow::{Result, anyhow};

/// Ends the error of an installation with what a person can do instead.
pub(super) fn or_by_hand<T>(result: Result<T>, command: &str) -> Result<T> {
    result.map_err(|error| anyhow!("{error:#}\n  by hand: {command}"))
}
