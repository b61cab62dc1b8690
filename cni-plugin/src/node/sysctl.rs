//! Kernel settings under /proc/sys/net, of the calling thread's network namespace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A setting cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub(crate) struct SysctlError {
    path: PathBuf,
    source: io::Error,
}

/// Writes `value` to `key`, a path below /proc/sys such as `net/ipv4/ip_forward`.
///
/// # Errors
/// [`SysctlError`], also when the kernel does not have the setting.
pub(crate) fn write(key: &str, value: &str) -> Result<(), SysctlError> {
    let path = Path::new("/proc/sys").join(key);
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
        .map_err(|source| SysctlError { path, source })
}

/// What `key` says; none where the kernel does not have the setting.
pub(crate) fn read(key: &str) -> Option<String> {
    fs::read_to_string(Path::new("/proc/sys").join(key)).ok().map(|text| text.trim().to_owned())
}

/// Writes `value` unless it is there already: some settings do more work when written than when read.
///
/// # Errors
/// [`SysctlError`].
pub(crate) fn ensure(key: &str, value: &str) -> Result<(), SysctlError> {
    let path = Path::new("/proc/sys").join(key);
    match fs::read_to_string(path) {
        Ok(text) if text.trim() == value => Ok(()),
        _ => write(key, value),
    }
}
