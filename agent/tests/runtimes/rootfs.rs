//! A container's root directory: a static busybox under the names that the tests use.

use std::path::{Path, PathBuf};

use shunt_lab::{Lacking, skip};

/// Where distributions put it.
const BUSYBOX: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];

/// A server for [`CLIENT`]: what comes in on port 7000 goes back.
pub(crate) const SERVER: &str = "exec nc -ll -p 7000 -e cat";

/// Sends eight megabytes to the address in `$1`, and compares what comes back with it. The server may not listen yet.
pub(crate) const CLIENT: &str = r#"
head -c 8000000 /dev/urandom > /tmp/sent
for attempt in $(seq 50); do
    nc -w 3 "$1" 7000 < /tmp/sent > /tmp/heard && break
    sleep 0.1
done
cmp /tmp/sent /tmp/heard && echo the same
"#;

/// What [`CLIENT`] says in the end.
pub(crate) const SAME: &str = "the same";

/// Makes one at `root`.
pub(crate) fn make(root: &Path) {
    for directory in ["bin", "dev", "etc", "proc", "run", "sys", "tmp"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    std::fs::copy(busybox().unwrap(), root.join("bin/busybox")).unwrap();
    for name in ["cat", "cmp", "head", "ip", "nc", "seq", "sh", "sleep"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
    }
}

fn busybox() -> Option<PathBuf> {
    BUSYBOX.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Whether a test must skip itself, having said why.
pub(crate) fn lacks(packages: &[(&'static str, &str)]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<_> = std::env::split_paths(&path).collect();
    directories.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let missing =
        packages.iter().find(|(_, program)| !directories.iter().any(|at| at.join(program).is_file()));
    let missing = missing.map(|(package, _)| *package).or(busybox().is_none().then_some("busybox-static"));
    if let Some(package) = missing {
        skip(Lacking::Package(package));
    }
    missing.is_some()
}
