//! What the image is made of: which version, of which commit, of when.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

/// Where the programs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The workspace's version.
    pub version: String,
    /// The commit; none outside a checkout.
    pub revision: Option<String>,
    /// When, in seconds since 1970: the commit's time, or what `SOURCE_DATE_EPOCH` says (reproducible-builds.org).
    pub seconds: u64,
}

impl Origin {
    /// Asks git and the environment.
    ///
    /// # Errors
    /// `SOURCE_DATE_EPOCH` is no number.
    pub fn of(checkout: &Path) -> Result<Self> {
        let revision = git(checkout, &["rev-parse", "HEAD"]).ok();
        let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(seconds) => seconds,
            Err(_) => git(checkout, &["log", "-1", "--format=%ct"]).unwrap_or_else(|_| "0".to_owned()),
        };
        let seconds = seconds.parse().context("SOURCE_DATE_EPOCH is no number of seconds")?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), revision, seconds })
    }

    /// The time as RFC 3339 has it.
    pub(crate) fn created(&self) -> String {
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(self.seconds)).to_string()
    }
}

fn git(checkout: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(checkout).args(arguments).output().context("run git")?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
