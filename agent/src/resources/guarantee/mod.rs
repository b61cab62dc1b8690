//! Claims are had also while an uplink is full: its queue is shared out, a share to each claimed attachment and what is left to all else.
//!
//! In: attachments with claims, what the uplink sends at most. Out: classes and filters at the uplink's root ([`shunt_netlink::tc::shares`]).
//! Where the hardware sends by several queues, or somebody else has the root, nothing is changed and the status says why.

mod applied;
mod desired;
mod removed;

pub(crate) use self::applied::Guarantee;
