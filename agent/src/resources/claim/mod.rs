//! Claims of bandwidth: read at the start, made limits of the attachments of their pods.

mod applied;
mod missing;
mod state;

pub(crate) use applied::unclaim;
#[cfg(feature = "kubernetes")]
pub(crate) use missing::has_claim;
