//! `/proc/sys`, writable: the agent, and the plugin's procedure in it, set what a kernel has only there, in the node's namespace and the containers'. A
//! runtime that starts the agent as a container mounts it read-only.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};

/// Every file there checks its caller's capabilities itself.
const SYSCTLS: &str = "/proc/sys";

/// The flags of the mount that stay as they are, for the kernel refuses to take them off (mount(2), "remounting an existing mount").
const KEPT: [(FsFlags, MsFlags); 3] = [
    (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
    (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
    (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
];

/// Sees to it, for this thread and those that it will make. Where it is read-only, they get a mount namespace of their own: nobody else's files change,
/// and what is mounted later reaches them as before.
///
/// # Errors
/// The kernel's; all is as it was, but for a namespace.
pub fn ensure() -> Result<(), Errno> {
    let flags = statvfs(SYSCTLS)?.flags();
    if !flags.contains(FsFlags::ST_RDONLY) {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWNS)?;
    let kept = KEPT.into_iter().filter(|(is, _)| flags.contains(*is)).map(|(_, stays)| stays);
    let anew = kept.fold(MsFlags::MS_REMOUNT | MsFlags::MS_BIND, MsFlags::union);
    mount(None::<&str>, SYSCTLS, None::<&str>, anew, None::<&str>)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;

    /// A setting of a network namespace alone.
    const SETTING: &str = "/proc/sys/net/ipv4/conf/lo/arp_notify";

    fn is_read_only() -> bool {
        statvfs(SYSCTLS).unwrap().flags().contains(FsFlags::ST_RDONLY)
    }

    /// As a container's runtime leaves it, for this thread.
    fn make_read_only() {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).unwrap();
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(Some(SYSCTLS), SYSCTLS, none, MsFlags::MS_BIND, none).unwrap();
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        mount(none, SYSCTLS, none, flags | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_NODEV, none)
            .unwrap();
    }

    #[test]
    fn where_it_is_read_only_it_becomes_writable_for_this_thread_and_its_own() {
        let trial = || {
            make_read_only();
            assert!(is_read_only() && fs::write(SETTING, "1").is_err());
            // Another thread of the process is not concerned.
            thread::scope(|scope| {
                let other = scope.spawn(|| {
                    ensure().unwrap();
                    fs::write(SETTING, "1").unwrap();
                    thread::scope(|inner| assert!(!inner.spawn(is_read_only).join().unwrap()));
                    statvfs(SYSCTLS).unwrap().flags()
                });
                let flags = other.join().unwrap();
                assert!(
                    flags.contains(FsFlags::ST_NOSUID | FsFlags::ST_NOEXEC | FsFlags::ST_NODEV),
                    "{flags:?}"
                );
            });
            assert!(is_read_only());
        };
        thread::spawn(trial).join().unwrap();
    }

    #[test]
    fn where_it_is_writable_nothing_is_done() {
        let namespace = || fs::read_link("/proc/thread-self/ns/mnt").unwrap();
        let before = namespace();
        assert!(!is_read_only(), "the machine's own");
        ensure().unwrap();
        assert_eq!(namespace(), before);
    }
}
