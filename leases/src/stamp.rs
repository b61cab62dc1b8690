//! Whether names in a directory have changed, without a look at any of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::stat::FileStat;

/// How old the last change has to be for the next one to have another time: file systems count in up to two seconds (FAT).
const SETTLED: Duration = Duration::from_secs(3);

/// What is another one once a file of a directory is made, removed or replaced; not once one is rewritten in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// The same of `ctime`, which nobody can set.
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(found: &FileStat) -> Self {
        Self {
            device: found.st_dev,
            inode: found.st_ino,
            modified: (found.st_mtime, found.st_mtime_nsec),
            changed: (found.st_ctime, found.st_ctime_nsec),
        }
    }

    /// Whether each change after `now` gives another stamp. One that is of the future has to be waited for.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let last = self.modified.0.max(self.changed.0);
        let last = u64::try_from(last).unwrap_or_default();
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(Duration::from_secs(last)) > SETTLED
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::{Directory, Record, Store};

    fn stamp(data_dir: &Path) -> Stamp {
        Directory::open(data_dir, "net").unwrap().unwrap().stamp().unwrap()
    }

    /// The next change of a file has another time from here on.
    fn wait() {
        std::thread::sleep(Duration::from_millis(50));
    }

    #[test]
    fn each_way_to_change_who_holds_an_address_gives_another_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let ip = "10.0.0.2".parse().unwrap();
        let (one, other) = (Record::of("c1", "eth0"), Record::of("c2", "eth0"));
        let open = || Store::open_or_create(dir.path(), "net").unwrap();
        drop(open());
        let lease = dir.path().join("net/10.0.0.2");
        let draft = dir.path().join("draft");
        fs::write(&draft, "c3\r\neth0").unwrap();
        let mut last = stamp(dir.path());
        let changes: [(&str, &dyn Fn()); 5] = [
            ("reserved", &|| assert!(open().reserve(ip, one).unwrap())),
            ("released", &|| open().release(ip, one).unwrap()),
            ("reserved for another one", &|| assert!(open().reserve(ip, other).unwrap())),
            ("replaced", &|| fs::rename(&draft, &lease).unwrap()),
            ("removed", &|| fs::remove_file(&lease).unwrap()),
        ];
        for (what, change) in changes {
            wait();
            assert_eq!(stamp(dir.path()), last, "before it is {what}");
            change();
            assert_ne!(stamp(dir.path()), last, "{what}");
            last = stamp(dir.path());
        }
        wait();
        drop(open());
        assert_eq!(stamp(dir.path()), last, "a lock that is taken and released changes nobody's lease");
        fs::rename(dir.path().join("net"), dir.path().join("former")).unwrap();
        drop(open());
        assert_ne!(stamp(dir.path()), last, "another directory");
    }

    #[test]
    fn a_stamp_of_this_moment_or_of_the_future_is_not_settled() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open_or_create(dir.path(), "net").unwrap());
        let (stamp, now) = (stamp(dir.path()), SystemTime::now());
        assert!(!stamp.is_settled(now) && !stamp.is_settled(now - Duration::from_secs(3600)));
        assert!(stamp.is_settled(now + Duration::from_secs(5)));
    }
}
