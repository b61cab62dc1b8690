//! When nothing can be explained.

use aya::maps::MapError;

use shunt_netlink::NetlinkError;

/// Why the maps could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// A map.
    #[error("map {map}: {source}")]
    Map {
        /// Which.
        map: &'static str,
        /// aya's word.
        source: MapError,
    },
    /// The routes.
    #[error(transparent)]
    Route(#[from] NetlinkError),
}
