//! The file system that the kernel starts with, as a cpio archive of the "newc" kind
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`): every number is eight hexadecimal digits, names end
//! in a zero byte, and names and contents are padded to four bytes.

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive in the making.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub(super) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    /// A file that everybody may run.
    pub(super) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        self.bytes.extend(b"070701");
        // inode, mode, uid, gid, links, mtime, size, four device numbers, name's size, checksum (of another kind)
        for field in [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn another_program_reads_the_archive() {
        let mut archive = Archive::default();
        archive.directory("modules");
        archive.file("modules/odd", b"12345");
        let directory = tempfile::tempdir().unwrap();
        let mut cpio = Command::new("busybox")
            .args(["cpio", "-i"])
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        cpio.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        assert!(cpio.wait().unwrap().success());
        assert_eq!(std::fs::read(directory.path().join("modules/odd")).unwrap(), b"12345");
    }
}
