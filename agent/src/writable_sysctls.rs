//! `/proc/sys/net`, writable: the agent, and the plugin's procedure in it, set what a kernel has only there, in the node's namespace and the containers'. A
//! runtime that starts the agent as a container mounts `/proc/sys` read-only. What is not of the network stays so: the kernel asks no capability of root
//! there (`proc_sys_permission`, fs/proc/proc_sysctl.c).

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};

/// The kernel asks for `CAP_NET_ADMIN` here (`net_ctl_permissions`, net/sysctl_net.c).
const SYSCTLS: &str = "/proc/sys/net";

/// The flags of the mount that stay as they are, for the kernel refuses to take them off (mount(2), "remounting an existing mount").
const KEPT: [(FsFlags, MsFlags); 3] = [
    (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
    (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
    (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
];

/// Makes it so for this thread and those that it will make, and says whether it was read-only. Then they get a mount namespace of their own: what is
/// mounted for others does not change, and what is mounted later reaches them as before. Who enters the container later enters this namespace.
///
/// # Errors
/// The kernel's; all is as it was, but for a namespace.
pub fn ensure() -> Result<bool, Errno> {
    let flags = statvfs(SYSCTLS)?.flags();
    if !flags.contains(FsFlags::ST_RDONLY) {
        return Ok(false);
    }
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(Some(SYSCTLS), SYSCTLS, none, MsFlags::MS_BIND, none)?;
    let kept = KEPT.into_iter().filter(|(is, _)| flags.contains(*is)).map(|(_, stays)| stays);
    let anew = kept.fold(MsFlags::MS_REMOUNT | MsFlags::MS_BIND, MsFlags::union);
    mount(none, SYSCTLS, none, anew, none)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
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
        let (none, all) = (None::<&str>, "/proc/sys");
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(Some(all), all, none, MsFlags::MS_BIND, none).unwrap();
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        mount(none, all, none, flags | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_NODEV, none)
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
                    assert!(ensure().unwrap());
                    fs::write(SETTING, "1").unwrap();
                    assert!(OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern").is_err());
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
        if is_read_only() {
            return;
        }
        let namespace = || fs::read_link("/proc/thread-self/ns/mnt").unwrap();
        let before = namespace();
        assert!(!ensure().unwrap());
        assert_eq!(namespace(), before);
    }
}
