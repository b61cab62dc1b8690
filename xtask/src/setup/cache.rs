//! The directory where setup keeps what it downloads: `$SHUNT_CACHE`, else `shunt` in the user's cache directory.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub(crate) fn directory() -> Result<PathBuf> {
    if let Some(path) = given("SHUNT_CACHE") {
        return std::path::absolute(path).context("SHUNT_CACHE is no path");
    }
    if let Some(path) = given("XDG_CACHE_HOME") {
        return Ok(path.join("shunt"));
    }
    let home = given("HOME").context("neither SHUNT_CACHE nor HOME is set: where may the tools be kept?")?;
    Ok(home.join(".cache/shunt"))
}

/// Two setups at once would unpack into the same place; the second waits here. Held until dropped.
pub(crate) fn lock() -> Result<File> {
    let directory = directory()?;
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

fn given(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Makes `ours` by way of a folder beside it, which goes afterwards.
pub(super) fn in_scratch(ours: &Path, make: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
    let scratch = ours.with_extension("download");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let made = make(&scratch, ours);
    fs::remove_dir_all(&scratch).ok();
    made
}
