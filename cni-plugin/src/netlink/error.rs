//! Why the kernel, or the socket to it, refused.

use std::io;

use nix::errno::Errno;

/// A netlink request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetlinkError {
    /// The socket cannot be opened or used.
    #[error("netlink: {0}")]
    Socket(#[from] io::Error),
    /// The kernel refused a request.
    #[error("could not {what}: {}", errno.desc())]
    Refused {
        /// What was asked, to follow "could not".
        what: String,
        /// The kernel's answer.
        errno: Errno,
    },
    /// An answer is not what the kernel's documentation says.
    #[error("could not {what}: the kernel's answer cannot be read")]
    Malformed {
        /// What was asked.
        what: String,
    },
}

impl NetlinkError {
    /// The kernel's error number, where it was the kernel that refused.
    pub(crate) fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            Self::Socket(_) | Self::Malformed { .. } => None,
        }
    }

    /// Whether the thing asked for or worked on is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.errno(), Some(Errno::ENODEV | Errno::ENOENT))
    }
}
