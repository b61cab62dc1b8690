//! The plugin `loopback`.
//!
//! containerd calls it for every pod, to set `lo` up, and no pod starts where it is missing. shunt's plugin takes the name where nobody has it; a
//! reference plugin that is there stays, and one that comes later takes it.

use std::path::Path;

use super::{InstallError, link};

/// The reference plugin's name.
const LOOPBACK: &str = "loopback";

/// Links the plugin under the name if there is none. Says so.
pub(super) fn complete(bin_dir: &Path) -> Result<Option<String>, InstallError> {
    let path = bin_dir.join(LOOPBACK);
    // A link that leads nowhere is no plugin.
    if path.exists() { Ok(None) } else { link(&path).map(Some) }
}
