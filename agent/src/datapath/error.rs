//! Why programs and maps cannot be changed.

use aya::maps::MapError;
use shunt_netlink::NetlinkError;

use super::attach::cgroup::SocketError;
use super::attach::clsact::ClsactError;
use super::attach::hook::Hook;
use super::attach::tcx::TcxError;
use super::exclusive::ExclusiveError;
use super::loader::ObjectError;
use super::maps::is_full;
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
    #[error("map {map}: {}", reason(source))]
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

/// What the kernel said of a map: aya's errors name the call only.
fn reason(error: &MapError) -> String {
    match error {
        error if is_full(error) => "it is full".to_owned(),
        MapError::SyscallError(error) => format!("{error}: {}", error.io_error),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use aya::sys::SyscallError;

    use super::*;

    #[test]
    fn a_map_s_error_says_what_the_kernel_said() {
        let said = |errno| {
            let io_error = io::Error::from_raw_os_error(errno);
            let source = MapError::SyscallError(SyscallError { call: "bpf_map_update_elem", io_error });
            DatapathError::Map { map: "MAPPINGS", source }.to_string()
        };
        assert_eq!(said(nix::libc::E2BIG), "map MAPPINGS: it is full");
        assert!(said(nix::libc::ENOMEM).contains("Cannot allocate memory"), "{}", said(nix::libc::ENOMEM));
    }
}
