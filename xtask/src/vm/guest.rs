//! What the guest starts with: a shell and the modules for its root, two scripts, and the list of tests to run.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::initramfs::Archive;
use super::kernel::{Kernel, Series};
use super::modules;
use super::record;
use super::suites::Suite;

const INIT: &str = include_str!("init.sh");
const GUEST: &str = include_str!("guest.sh");

/// The archive for one kernel. `programs` is the folder of the plugin and the agent.
pub(super) fn initramfs(
    (series, kernel): (Series, &Kernel),
    busybox: &Path,
    programs: &Path,
    suites: &[Suite],
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in ["bin", "proc", "sys", "dev", "lower", "memory", "top", "modules"] {
        archive.directory(directory);
    }
    archive.file("bin/busybox", &read(busybox)?);
    archive.file("init", INIT.as_bytes());
    archive.file("guest", GUEST.as_bytes());
    let mut to_load = Vec::new();
    for module in modules::for_root(&kernel.modules)? {
        let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
        archive.file(&format!("modules/{name}"), &read(&module)?);
        to_load.push(name);
    }
    archive.file("settings", settings((series, kernel), busybox, programs, &to_load).as_bytes());
    archive.file("tests", tests(suites).as_bytes());
    Ok(archive.finish())
}

fn settings(
    (series, kernel): (Series, &Kernel),
    busybox: &Path,
    programs: &Path,
    to_load: &[String],
) -> String {
    let values = [
        ("MODULES_TO_LOAD", to_load.join(" ")),
        ("MODULES", kernel.modules.display().to_string()),
        ("BUSYBOX", busybox.display().to_string()),
        ("SHUNT_BIN_DIR", programs.display().to_string()),
        ("RECORD", record::path(series).display().to_string()),
        (record::RENEW, if record::is_to_be_renewed() { "1" } else { "" }.to_owned()),
    ];
    values.map(|(name, value)| format!("{name}={}\n", quoted(value.as_ref()))).concat()
}

fn tests(suites: &[Suite]) -> String {
    let mut script = String::new();
    for suite in suites {
        let words = [suite.folder.as_os_str(), suite.binary.as_os_str()].into_iter();
        let words: Vec<_> = words.chain(suite.words.iter().map(OsStr::new)).map(quoted).collect();
        script.push_str(&format!("run {}\n", words.join(" ")));
    }
    script
}

/// One word of a shell command, whatever is in it.
fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_filter_reaches_the_guest_as_one_word() {
        let words = vec!["it's $HOME".to_owned()];
        let suite = Suite { binary: "/target/parity".into(), folder: "/agent".into(), words };
        assert_eq!(tests(&[suite]), "run '/agent' '/target/parity' 'it'\\''s $HOME'\n");
    }
}
