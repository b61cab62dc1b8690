//! Why programs and maps cannot be changed.

use aya::maps::MapError;
use shunt_netlink::NetlinkError;

use super::attach::cgroup::SocketError;
use super::attach::clsact::ClsactError;
use super::attach::hook::Hook;
use super::attach::tcx::TcxError;
use super::exclusive::ExclusiveError;
use super::loader::ObjectError;
use super::mount::MountError;
use super::upgrade::versions::VersionError;

/// Why programs and maps cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum DatapathError {
    /// There is no BPF file system.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The directories for pins cannot be made.
    #[error("the pin directory below {path}: {source}")]
    Pins {
        /// The configured directory.
        path: std::path::PathBuf,
        /// The file system's word.
        source: std::io::Error,
    },
    /// Another agent is in the way.
    #[error(transparent)]
    Exclusive(#[from] ExclusiveError),
    /// Pins of another version cannot be taken over.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The programs cannot be loaded.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Netlink failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A map entry was refused.
    #[error("map {map}: {source}")]
    Map {
        /// The map.
        map: &'static str,
        /// aya's word.
        source: MapError,
    },
    /// A tcx link was refused.
    #[error("{hook}: {source}")]
    Tcx {
        /// Where.
        hook: Hook,
        /// What happened.
        source: TcxError,
    },
    /// XDP was refused.
    #[error("XDP on {ifname}: {source}")]
    Native {
        /// Which.
        ifname: String,
        /// What happened.
        source: TcxError,
    },
    /// A filter was refused.
    #[error("{hook}: {source}")]
    Clsact {
        /// Where.
        hook: Hook,
        /// What happened.
        source: ClsactError,
    },
    /// A program on sockets was refused.
    #[error("{program}: {source}")]
    Socket {
        /// The program.
        program: &'static str,
        /// What happened.
        source: SocketError,
    },
    /// All counter slots are in use.
    #[error("the node has as many ports as this version serves")]
    Full,
}

/// Adds the map's name to an error.
pub(crate) fn in_map(map: &'static str) -> impl FnOnce(MapError) -> DatapathError {
    move |source| DatapathError::Map { map, source }
}
