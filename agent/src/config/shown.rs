//! How values are written that have no text of their own.

use std::path::Path;

use serde::{Serialize as _, Serializer, ser::SerializeMap as _};

use super::ClusterOptions;

/// A path, whatever its bytes are.
pub(super) fn path<S: Serializer>(path: &impl AsRef<Path>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.as_ref().display())
}

/// The same, or none.
pub(super) fn optional_path<S: Serializer>(
    path: &Option<impl AsRef<Path>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.as_ref().display().to_string()).serialize(serializer)
}

/// The cluster's network; of one that is not, that it is not.
pub(super) fn cluster<S: Serializer>(
    cluster: &Option<ClusterOptions>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match cluster {
        Some(cluster) => cluster.serialize(serializer),
        None => {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry("enabled", &false)?;
            map.end()
        }
    }
}
