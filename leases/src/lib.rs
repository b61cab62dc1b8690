//! Who holds which address: the files that host-local and the built-in IPAM keep.
//!
//! A network's state is one directory, `<dataDir>/<network>`, with a file per held address, named by it and holding who holds it
//! ([`Record`]), and a lock. The plugin opens what its own configuration names ([`Store::open`]); the agent, which is told a path and
//! comes back to it later, opens a [`Directory`]: absolute, no symbolic link followed, no wait without an end.

#![forbid(unsafe_code)]

mod directory;
mod error;
mod files;
mod holders;
mod lock;
mod place;
mod record;
mod stamp;
mod store;

pub use directory::Directory;
pub use error::Error;
pub use files::{Standing, addresses_in};
pub use holders::second_names;
pub use lock::{Lock, LockError, Sharing};
pub use place::{is_usable, straightened};
pub use record::Record;
pub use stamp::Stamp;
pub use store::{Identity, Store};
