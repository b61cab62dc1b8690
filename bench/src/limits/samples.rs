//! What many measurements come to.

use anyhow::{Context, Result};

/// The value that a `share` (0 to 1) of the times is not above.
pub(super) fn quantile(times: &mut [f64], share: f64) -> Result<f64> {
    times.sort_by(f64::total_cmp);
    let at = (times.len().saturating_sub(1) as f64 * share).round() as usize;
    times.get(at).copied().context("no datagram came back")
}
