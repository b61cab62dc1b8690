//! The two sockets of a driver, and their names.
//!
//! A kubelet's calls name the socket's path, with its slashes escaped, as the `:authority` of HTTP/2. The parser of authorities
//! (crate http) takes a `%` only before an `@`, as a user's name: both files have one in their names.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::socket::{HIDDEN, Socket, SocketError, failed, remove_stale};

/// Where kubelets look for plugins, below their root.
const REGISTRY: &str = "plugins_registry";

/// Where plugins have files of their own, below the kubelet's root.
const PLUGINS: &str = "plugins";

/// The driver's own socket.
const OWN: &str = "dra@k.sock";

/// Ends the name of a socket in the registry.
const REGISTRATION: &str = "-reg@k.sock";

/// Where a driver listens.
#[derive(Debug)]
pub(crate) struct Sockets {
    own_path: PathBuf,
    registration_path: PathBuf,
    pub(crate) own: Socket,
    pub(crate) registration: Socket,
}

impl Sockets {
    /// Makes both, the one in the registry last: a kubelet that finds it goes on to the other at once. Sockets of dead processes go.
    ///
    /// # Errors
    /// [`SocketError`]: also where the kubelet's root is elsewhere.
    pub(crate) fn open(root: &Path, driver: &str) -> Result<Self, SocketError> {
        let (registry, directory) = (root.join(REGISTRY), root.join(PLUGINS).join(driver));
        remove_dead(&registry, driver)?;
        DirBuilder::new().recursive(true).mode(0o750).create(&directory).map_err(failed(&directory))?;
        let (own_path, registration_path) = (directory.join(OWN), registry.join(registration(driver)));
        let own = Socket::bind(&own_path)?;
        let registration = Socket::bind(&registration_path)?;
        Ok(Self { own_path, registration_path, own, registration })
    }

    /// The path of the driver's own socket.
    pub(crate) fn endpoint(&self) -> String {
        self.own_path.to_string_lossy().into_owned()
    }

    /// Makes files again that somebody has removed, as who sets up a kubelet anew.
    ///
    /// # Errors
    /// [`SocketError`].
    pub(crate) fn make_lost(&mut self) -> Result<(), SocketError> {
        if self.own.is_lost() {
            self.own = Socket::bind(&self.own_path)?;
            tracing::warn!(socket = %self.own_path.display(), "the socket's file was gone: it was made again");
        }
        if self.registration.is_lost() {
            self.registration = Socket::bind(&self.registration_path)?;
            tracing::warn!(socket = %self.registration_path.display(), "the socket's file was gone: it was made again");
        }
        Ok(())
    }
}

/// A name that no earlier process has had: a kubelet takes the socket for a new one. Process ids come again.
fn registration(driver: &str) -> String {
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{driver}-{:x}-{:x}{REGISTRATION}", begun.as_secs(), process::id())
}

/// Removes the driver's sockets that nobody listens to.
fn remove_dead(registry: &Path, driver: &str) -> Result<(), SocketError> {
    for entry in fs::read_dir(registry).map_err(failed(registry))? {
        let entry = entry.map_err(failed(registry))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let visible = name.strip_prefix(HIDDEN).unwrap_or(&name);
        if visible
            .strip_prefix(driver)
            .is_some_and(|rest| rest.starts_with('-') && rest.ends_with(REGISTRATION))
        {
            remove_stale(&entry.path())?;
        }
    }
    Ok(())
}
