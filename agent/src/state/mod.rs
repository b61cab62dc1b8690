//! The desired state: one small file per attachment, written before the kernel is changed.
//!
//! The content counts; the name only makes the file easy to find. A crash leaves a whole file or none, because files are renamed into
//! place. After a power cut a file may be torn, but the kernel's state is gone as well: such a file is moved aside and the agent starts.

mod name;
mod record;
mod recorded;
mod relocation;
mod store;

pub use record::{FORMAT, Record, RecordError};
pub use recorded::{Recorded, recorded};
pub use relocation::{Phase, Relocation};
pub use store::{Loaded, SetAside, Store, StoreError};
