//! The record of what the verifier takes on a kernel. The test that keeps it writes it anew in the guest, whose files go with
//! it; so the guest reads it out at its end.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::kernel::Series;
use crate::workspace;

/// Asks the test for it, here as in the guest.
pub(super) const RENEW: &str = "SHUNT_RENEW_BUDGETS";

pub(super) fn is_to_be_renewed() -> bool {
    std::env::var_os(RENEW).is_some()
}

/// Where the test looks for it: the same in the guest.
pub(super) fn path(series: Series) -> PathBuf {
    workspace::root().join("agent/tests/verifier").join(format!("{}.txt", series.name()))
}

/// Takes over what the guest has read out, if it has.
pub(super) fn renew(series: Series, lines: &[String]) -> Result<()> {
    if lines.is_empty() || !is_to_be_renewed() {
        return Ok(());
    }
    let path = path(series);
    println!("{:<4} | renewed: {}", series.name(), path.display());
    fs::write(&path, lines.join("\n") + "\n").with_context(|| format!("cannot write {}", path.display()))
}
