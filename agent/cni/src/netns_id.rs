//! Which namespace is at a path: another one is there after the container, or the node, was started anew.
//!
//! The inode does not say so: the next namespace has the lowest number that is free, which is often the last one's. The kernel's cookie
//! (`SO_NETNS_COOKIE`, Linux 5.14) is given to one namespace alone as long as the node runs.

use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, setns};
use shunt_netlink::namespace::apart;
use shunt_netlink::namespace_cookie;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Looks at a namespace: [`of`], or a test's.
pub(crate) type Look = fn(&str) -> Option<String>;

/// The namespace at a path. None where there is none, or where it cannot be known.
pub(crate) fn of(path: &str) -> Option<String> {
    let boot = fs::read_to_string(BOOT).ok()?;
    let cookie = apart("netns-cookie", || cookie_within(Path::new(path))).ok()?.ok()?;
    Some(format!("{}/{cookie}", boot.trim()))
}

/// What is known of a namespace that was at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// It is still there.
    Same,
    /// Another one is there.
    Replaced,
    /// One of the two is not known.
    Unknown,
}

/// Compares what was at a path with what is there.
pub(crate) fn compare(before: Option<&str>, now: Option<&str>) -> Now {
    match (before, now) {
        (Some(before), Some(now)) if before == now => Now::Same,
        (Some(_), Some(_)) => Now::Replaced,
        _ => Now::Unknown,
    }
}

/// The cookie of the namespace at a path, in which the calling thread stays.
fn cookie_within(path: &Path) -> io::Result<u64> {
    setns(shunt_regular_file::open(path)?, CloneFlags::CLONE_NEWNET)?;
    Ok(namespace_cookie::own()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_cookie_is_another_namespace_and_what_is_not_known_is_neither() {
        assert_eq!(compare(Some("boot/1"), Some("boot/1")), Now::Same);
        assert_eq!(compare(Some("boot/1"), Some("boot/2")), Now::Replaced);
        assert_eq!(compare(Some("boot/1"), Some("other/1")), Now::Replaced);
        for (before, now) in [(Some("boot/1"), None), (None, Some("boot/1")), (None, None)] {
            assert_eq!(compare(before, now), Now::Unknown);
        }
    }

    #[test]
    fn what_is_no_namespace_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("netns");
        assert_eq!(of(path.to_str().unwrap()), None);
        fs::write(&path, "").unwrap();
        assert_eq!(of(path.to_str().unwrap()), None);
    }

    #[test]
    fn a_namespace_has_one_cookie() {
        let cookie = namespace_cookie::own().unwrap();
        assert_ne!(cookie, 0);
        assert_eq!(std::thread::spawn(namespace_cookie::own).join().unwrap(), Ok(cookie));
    }
}
