//! Masquerading by the kernel, set over netlink: no `iptables` and no `nft` is ever run.
//!
//! One table of ours holds one rule for each prefix of each network that wants it. It is written anew, as one transaction,
//! whenever that list changes, so that it cannot drift and nothing in it outlives its network. What is translated already
//! is conntrack's, and does not notice.

mod attribute;
mod batch;
mod expression;
mod masquerade;
mod prefix;

pub use batch::{Committed, NftError};
pub use masquerade::{MasqueradeRule, replace};
pub use prefix::{Prefix, PrefixError};
