//! Why the kernel, or the socket to it, refused.

use std::borrow::Cow;
use std::io;

use nix::errno::Errno;

/// A netlink request failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket cannot be opened or used.
    #[error("netlink: {0}")]
    Socket(#[from] io::Error),
    /// The kernel refused a request.
    #[error("could not {what}: {}{}", errno.desc(), explanation(detail.as_deref()))]
    Refused {
        /// What was asked, to follow "could not".
        what: Cow<'static, str>,
        /// The kernel's error number.
        errno: Errno,
        /// The kernel's own words (`NLMSGERR_ATTR_MSG`), where it has any.
        detail: Option<String>,
    },
    /// The kernel did not answer in time.
    #[error("could not {what}: no answer within {seconds} s")]
    TimedOut {
        /// What was asked.
        what: Cow<'static, str>,
        /// How long the socket waited.
        seconds: u64,
    },
    /// A table changed during every attempt to read it (`NLM_F_DUMP_INTR`).
    #[error("could not {what}: the kernel's table changed during each of {tries} attempts")]
    Interrupted {
        /// What was asked.
        what: Cow<'static, str>,
        /// How often the table was read.
        tries: u32,
    },
    /// A datagram does not fit the receive buffer.
    #[error("netlink: a datagram of {length} bytes exceeds the receive buffer")]
    Truncated {
        /// The datagram's length.
        length: usize,
    },
    /// An answer is not what the kernel's documentation says.
    #[error("netlink: the kernel's answer cannot be read: {0}")]
    Malformed(&'static str),
}

fn explanation(detail: Option<&str>) -> String {
    detail.map_or_else(String::new, |detail| format!(" ({detail})"))
}

impl NetlinkError {
    /// The kernel's error number, where it was the kernel that refused.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Whether the link, entry or object named in the request does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self.errno(), Some(Errno::ENODEV | Errno::ENOENT | Errno::ENXIO))
    }

    /// Whether the object to be made exists already.
    pub fn is_existing(&self) -> bool {
        self.errno() == Some(Errno::EEXIST)
    }

    /// Whether an interface has no such address.
    pub fn is_no_address(&self) -> bool {
        self.errno() == Some(Errno::EADDRNOTAVAIL)
    }

    /// Whether there is no such route.
    pub fn is_no_route(&self) -> bool {
        self.errno() == Some(Errno::ESRCH)
    }
}

/// Treats a refusal as success where `excused` holds: what was to be removed is gone, or what was to be made is there.
pub fn unless(
    outcome: Result<(), NetlinkError>,
    excused: impl Fn(&NetlinkError) -> bool,
) -> Result<(), NetlinkError> {
    match outcome {
        Err(error) if excused(&error) => Ok(()),
        other => other,
    }
}
