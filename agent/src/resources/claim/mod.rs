//! Claims of bandwidth: read at the start, made limits of the attachments of their pods.

#[cfg(feature = "kubernetes")]
mod allocated;
mod applied;
mod missing;
mod state;
#[cfg(feature = "kubernetes")]
mod waiting;

pub(crate) use applied::unclaim;
#[cfg(feature = "kubernetes")]
pub(crate) use missing::has_claim;
