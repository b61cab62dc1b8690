//! Which namespace is at a path: another one is there after the container, or the node, was started anew.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// A namespace's inode is its own as long as it lives, in one run of the node. None where there is none.
pub(crate) fn of(path: &str) -> Option<String> {
    let inode = fs::metadata(path).ok()?.ino();
    let boot = fs::read_to_string(BOOT).ok()?;
    Some(format!("{}/{inode}", boot.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_at_the_same_path_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("netns");
        assert_eq!(of(path.to_str().unwrap()), None);
        fs::write(&path, "").unwrap();
        let first = of(path.to_str().unwrap()).unwrap();
        assert_eq!(of(path.to_str().unwrap()).unwrap(), first);
        // Beside the first one, so that it cannot have the same inode.
        fs::write(folder.path().join("new"), "").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert_ne!(of(path.to_str().unwrap()).unwrap(), first);
    }
}
