//! The desired state: one small file per attachment, written before the kernel is changed.
//!
//! The content counts; the name only makes the file easy to find. A crash leaves a whole file or none, because files are renamed into
//! place. A file that cannot be read does not keep the agent from starting: a torn one is moved aside, one that a newer agent or a disk that is
//! well again may read stays. What becomes of its port is told in `resources/port/unattached.rs`.

mod claims;
mod departed;
mod enlarged;
mod name;
pub mod plugin_directories;
mod record;
mod recorded;
mod relocation;
mod store;

pub use enlarged::Enlarged;
pub use record::{FORMAT, Record, RecordError};
pub use recorded::{Recorded, recorded};
pub use relocation::{Phase, Relocation};
pub(crate) use store::UNFINISHED;
pub use store::{Loaded, Store, StoreError, Unreadable};
