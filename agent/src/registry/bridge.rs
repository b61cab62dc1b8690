//! A bridge with attachments.

use shunt_netlink::link::Link;

/// A bridge that has attachments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// The bridge device, as the kernel last described it.
    pub link: Link,
    /// Its counters.
    pub slot: u32,
    /// Whether others have rules for what the node sends by it.
    pub heeded: bool,
}
