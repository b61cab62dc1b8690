//! A network namespace that lives as long as its value.
//!
//! It is kept alive by a bind mount, as `ip netns` does it, but entered with `setns` alone: `ip netns exec` also gives the
//! command a new `/sys`, and with it hides `/sys/fs/bpf` and the cgroups.

use std::fs::File;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace with `lo` up. Dropping it lets go of it; the kernel removes it with its last user.
#[derive(Debug)]
pub struct Namespace {
    path: PathBuf,
    file: File,
}

impl Namespace {
    /// Makes one, held by the file `path`.
    ///
    /// # Errors
    /// When not root, or the file exists.
    pub fn create(path: &Path) -> Result<Self> {
        File::create_new(path).with_context(|| format!("create {}", path.display()))?;
        let file = thread::scope(|scope| scope.spawn(|| unshare_onto(path)).join())
            .unwrap_or_else(|panic| resume_unwind(panic))
            .inspect_err(|_| drop(std::fs::remove_file(path)))?;
        let namespace = Self { path: path.to_path_buf(), file };
        namespace.command("ip", &["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// The file that holds it: what `CNI_NETNS` and `nsenter --net=` take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on a thread inside, and waits. Sockets made there stay in the namespace wherever they are used, and
    /// processes started there are born in it.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| -> Result<T> {
                self.join_thread()?;
                Ok(work())
            });
            inside.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Moves the calling thread in, for good: only for threads that one owns.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn join_thread(&self) -> Result<()> {
        setns(&self.file, CloneFlags::CLONE_NEWNET).with_context(|| format!("enter {}", self.path.display()))
    }

    /// Runs a command inside and gives its output; see [`crate::run`].
    ///
    /// # Errors
    /// When it cannot be started or fails; its output is in the error.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.enter(|| crate::run(program, arguments))?
    }

    /// Joins it to another one by a veth pair: the end `here` in this one, `there` in the other, both up.
    ///
    /// # Errors
    /// When `ip` refuses.
    pub fn pair(&self, here: &str, other: &Self, there: &str) -> Result<()> {
        let path = other.path.to_str().context("a namespace's path is not UTF-8")?;
        let pair = ["link", "add", here, "type", "veth", "peer", "name", there, "netns", path];
        self.command("ip", &pair)?;
        for (namespace, ifname) in [(self, here), (other, there)] {
            namespace.command("ip", &["link", "set", ifname, "up"])?;
        }
        Ok(())
    }

    /// Sets a sysctl of the namespace, named with slashes from `net/` on.
    ///
    /// # Errors
    /// When the kernel has no such setting or refuses the value.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<()> {
        let path = Path::new("/proc/sys").join(name);
        self.enter(|| std::fs::write(&path, value))?.with_context(|| format!("set {name} to {value}"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Already gone is fine: DEL is tested against that.
        umount2(&self.path, MntFlags::MNT_DETACH).ok();
        drop(std::fs::remove_file(&self.path));
    }
}

fn unshare_onto(path: &Path) -> Result<File> {
    unshare(CloneFlags::CLONE_NEWNET).context("make a network namespace (are you root?)")?;
    let ours = Path::new("/proc/thread-self/ns/net");
    mount(Some(ours), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .with_context(|| format!("hold the namespace at {}", path.display()))?;
    File::open(path).with_context(|| format!("open {}", path.display()))
}
