//! Tests that could not run. The harness has no word for that and hides what a passing test prints, so such a test
//! appends a line to the file that `SHUNT_SKIPS` names: `package: …`, `build: …` or `kernel: …`, and why.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::workspace;

pub(super) struct Skips {
    file: PathBuf,
}

impl Skips {
    /// Starts with an empty file.
    pub(super) fn create() -> Result<Self> {
        let file = workspace::root().join("target/skipped-tests");
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { file })
    }

    /// How the tests learn of the file.
    pub(super) fn environment(&self) -> [(&'static str, &PathBuf); 1] {
        [("SHUNT_SKIPS", &self.file)]
    }

    pub(super) fn read(&self) -> Result<Vec<String>> {
        let text = fs::read_to_string(&self.file);
        let text = text.with_context(|| format!("cannot read {}", self.file.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// A kernel may lack something, and so may who has not built for another processor; a CI machine may not lack a package.
    pub(super) fn judge(&self) -> Result<()> {
        let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        if ci && self.read()?.iter().any(|line| line.starts_with("package:")) {
            bail!("in CI no test may be skipped for a missing package");
        }
        Ok(())
    }
}
