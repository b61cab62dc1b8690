//! What the guest starts with: a shell and the modules for its root, two scripts, and the list of tests to run.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::initramfs::Archive;
use super::kernel::Kernel;
use super::modules;
use super::suites::Suite;
use crate::workspace;

const INIT: &str = include_str!("init.sh");
const GUEST: &str = include_str!("guest.sh");

/// The archive for one kernel. The suites get `arguments`, which the test harness understands.
pub(super) fn initramfs(
    kernel: &Kernel,
    busybox: &Path,
    suites: &[Suite],
    arguments: &[String],
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
    archive.file("settings", settings(kernel, busybox, &to_load).as_bytes());
    archive.file("tests", tests(suites, arguments).as_bytes());
    Ok(archive.finish())
}

fn settings(kernel: &Kernel, busybox: &Path, to_load: &[String]) -> String {
    let values = [
        ("MODULES_TO_LOAD", to_load.join(" ")),
        ("MODULES", kernel.modules.display().to_string()),
        ("BUSYBOX", busybox.display().to_string()),
        ("SHUNT_BIN_DIR", workspace::target().join("release").display().to_string()),
    ];
    values.map(|(name, value)| format!("{name}={}\n", quoted(value.as_ref()))).concat()
}

fn tests(suites: &[Suite], arguments: &[String]) -> String {
    let mut script = String::new();
    for suite in suites {
        let words = [suite.folder.as_os_str(), suite.binary.as_os_str()].into_iter();
        let options = suite.options.iter().chain(&["--color", "never"]).map(OsStr::new);
        let words = words.chain(arguments.iter().map(OsStr::new)).chain(options);
        let words: Vec<_> = words.map(quoted).collect();
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
        let suite = Suite { binary: "/target/parity".into(), folder: "/agent".into(), options: &[] };
        let script = tests(&[suite], &["it's $HOME".to_owned()]);
        assert_eq!(script, "run '/agent' '/target/parity' 'it'\\''s $HOME' '--color' 'never'\n");
    }
}
