//! What the agent intends, one small file per attachment, written before the kernel is touched.
//!
//! A file's content is the truth; its name only makes it findable. A crash leaves a whole file or none, because a file
//! is renamed into place. After a power cut a file may be torn, and nothing of the kernel's state is left either: such
//! a file is set aside and never stops the agent.

mod name;
mod record;
mod relocation;
mod store;

pub use record::{FORMAT, Record, RecordError};
pub use relocation::{Phase, Relocation};
pub use store::{Loaded, SetAside, Store, StoreError};
