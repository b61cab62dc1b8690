//! Keys of `extradata`, which the draft leaves to the two sides.

pub(super) const NETWORK: &str = "network";
pub(super) const CONTAINER: &str = "container_id";
pub(super) const IFNAME: &str = "ifname";
