//! Why addresses could not be had, given back or vouched for.

use std::io;
use std::time::Duration;

use super::host_local;
use crate::call::Failure;
use crate::result::ResultError;

/// The IPAM failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IpamError {
    /// `ipam.type` cannot be the name of a program.
    #[error("`ipam.type`: `{0}` is no name of a program: it has a slash, or is a directory's")]
    Name(String),
    /// The IPAM plugin is in none of CNI_PATH's directories.
    #[error("IPAM plugin `{name}` is in none of the directories of CNI_PATH ({path})")]
    NotFound {
        /// Its name.
        name: String,
        /// Where it was looked for.
        path: String,
    },
    /// `ipam.type` is the name of an interface plugin.
    #[error(
        "`ipam.type`: `{0}` makes interfaces, and gives out no addresses; name an IPAM plugin (shunt-ipam, host-local, ...)"
    )]
    Interface(String),
    /// The IPAM plugin cannot be run.
    #[error("IPAM plugin `{name}` cannot be run: {source}")]
    Run {
        /// Its name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The IPAM plugin took longer than the configuration allows, and was killed.
    #[error("IPAM plugin `{name}` has not ended after {timeout:?} (`ipamTimeout`)")]
    TimedOut {
        /// Its name.
        name: String,
        /// What is allowed.
        timeout: Duration,
    },
    /// The IPAM plugin failed, and said why.
    #[error("IPAM plugin `{name}` failed: {}", failure.msg)]
    Delegate {
        /// Its name.
        name: String,
        /// What it said.
        failure: Failure,
    },
    /// The IPAM plugin's output is not the protocol's.
    #[error("IPAM plugin `{name}` ended with {status} and said nothing that can be read")]
    Unreadable {
        /// Its name.
        name: String,
        /// Its exit status.
        status: String,
    },
    /// The IPAM plugin's result is not one.
    #[error("IPAM plugin `{name}`: {source}")]
    Result {
        /// Its name.
        name: String,
        /// What is wrong with it.
        source: ResultError,
    },
    /// A requested address is not one.
    #[error("requested address `{0}` is not an address")]
    Requested(String),
    /// See [`host_local::Error`].
    #[error(transparent)]
    BuiltIn(#[from] host_local::Error),
}

impl IpamError {
    /// Whether the configuration is such that no address can ever have been given by it.
    pub(crate) fn is_of_config(&self) -> bool {
        matches!(
            self,
            Self::Name(_)
                | Self::Interface(_)
                | Self::NotFound { .. }
                | Self::BuiltIn(host_local::Error::InvalidConfig { .. })
        )
    }
}
