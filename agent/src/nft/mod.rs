//! What the kernel's nf_tables does for us, set over netlink: no `iptables` and no `nft` is ever run.
//!
//! It masquerades what the programs do not begin, opens host ports where others' rules are asked who may use them, leads the node's own SCTP sockets to the
//! others, and says of which class the packets of
//! claimed containers are. One table of ours holds a rule for each prefix and each such host port, sets of destinations that are not
//! masqueraded, and maps of classes. It is written anew, as one transaction, whenever that list changes, so that
//! it cannot drift and nothing in it outlives its network. What is translated already is conntrack's, and does not notice.

mod attribute;
mod batch;
mod class_map;
mod expression;
mod host_port;
mod interval_set;
mod kind;
mod masquerade;
mod named_set;
mod names;
mod opened;
mod snapshot;
mod table;
mod unmasqueraded;

pub use batch::{Committed, Contents, NftError};
pub use host_port::HostPortRule;
pub use masquerade::MasqueradeRule;
pub(crate) use names::TABLE;
pub use opened::{Hidden, OpenedPort};
pub use snapshot::{Watched, keeps_translating};
pub(crate) use table::{LEADING_PRIORITY, is_own};
pub use table::{Rules, replace};
pub use unmasqueraded::UnmasqueradedRule;
