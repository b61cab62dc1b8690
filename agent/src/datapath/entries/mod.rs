//! Reads, writes and removes the entries of the maps, one file a kind of entry.

mod heeding;
mod kernel_shares;
mod learned;
mod locals;
mod mappings;
mod masquerades;
mod members;
mod nics;
mod outlets;
mod policers;
mod ports;
mod reverse_paths;
mod sparing;
mod subnets;
mod uplinks;

pub use self::heeding::HeedingEntry;
pub use self::outlets::{OutletEntries, SourceEntries};
pub use self::ports::FlowAffinity;
