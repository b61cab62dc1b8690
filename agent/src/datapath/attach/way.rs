//! How programs are to be attached.

use crate::config::AttachMode;
use crate::datapath::probe;

/// How programs are to be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As tcx links.
    Tcx,
    /// As filters of clsact.
    Clsact,
}

impl Way {
    /// The configured mode, if this kernel has it.
    pub fn find(wanted: AttachMode) -> Self {
        match wanted {
            AttachMode::Tcx => Self::Tcx,
            AttachMode::Auto if probe::has_tcx() => Self::Tcx,
            AttachMode::Auto | AttachMode::Clsact => Self::Clsact,
        }
    }
}
