//! Network namespaces of the test's own, and the node's.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use shunt_netlink::namespace::apart;

use super::directory::is_own;

/// Where sockets are made.
#[derive(Debug)]
pub(super) struct Namespace {
    /// None: the one that the test runs in.
    held: Option<(PathBuf, File)>,
}

impl Namespace {
    /// The node's.
    pub(super) const fn of_node() -> Self {
        Self { held: None }
    }

    /// Makes one, held by a file of this name in the directory. It goes when it is dropped.
    ///
    /// # Errors
    /// The kernel's; or the next test would not sweep this name.
    pub(super) fn make(directory: &Path, name: &str) -> io::Result<Self> {
        if !is_own(name) {
            return Err(io::Error::other(format!("{name} is no name of a test's namespace")));
        }
        let path = directory.join(name);
        File::create_new(&path)?;
        let made = apart("namespace", || hold(&path)).and_then(|held| held);
        match made {
            Ok(file) => Ok(Self { held: Some((path, file)) }),
            Err(error) => {
                fs::remove_file(&path)?;
                Err(error)
            }
        }
    }

    /// The file that a plugin is given.
    pub(super) fn path(&self) -> &Path {
        self.held.as_ref().map_or(Path::new("/proc/self/ns/net"), |(path, _)| path)
    }

    /// The open file, of one that was made.
    pub(super) fn file(&self) -> Option<&File> {
        self.held.as_ref().map(|(_, file)| file)
    }

    /// Does something inside; sockets that are made there stay there.
    ///
    /// # Errors
    /// It cannot be entered, or what is done fails.
    pub(super) fn enter<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        apart("sandbox", || {
            if let Some(file) = self.file() {
                setns(file, CloneFlags::CLONE_NEWNET)?;
            }
            work()
        })?
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.held {
            // What is gone already needs no more.
            let _gone = umount2(path, MntFlags::MNT_DETACH);
            let _gone = fs::remove_file(path);
        }
    }
}

/// Makes one for the calling thread, which ends.
fn hold(path: &Path) -> io::Result<File> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let own = Some(Path::new("/proc/thread-self/ns/net"));
    mount(own, path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    File::open(path).inspect_err(|_| {
        let _gone = umount2(path, MntFlags::MNT_DETACH);
    })
}
