//! The built-in IPAM: host-local's configuration, lock, files and answers, in process.
//!
//! A network's state (crate `shunt_leases`) is one directory, `<dataDir>/<network>`, with a file per held address, named by it and holding who
//! holds it. host-local keeps exactly the same files under the same lock, so that either may allocate and release beside
//! the other at any time. Where the two differ on purpose: an ADD that fails gives back only what it took itself, DEL
//! needs no valid ranges, GC and STATUS are real, and an exhausted range says how many addresses it has.
//!
//! The network's name and the container id become parts of paths and records: they must have been validated before.

mod address;
mod allocate;
mod config;
mod error;
mod fault;
mod inspect;
mod json;
mod range;
mod range_set;
mod release;
mod request;
mod resolv_conf;
mod round_robin;
mod subnet;
mod wishes;

pub use allocate::add;
pub(crate) use config::data_dir;
pub use error::Error;
pub use fault::Fault;
pub use inspect::{check, one_address_per_family, status, validate};
pub use release::{del, gc};
pub use request::{AllocatedIp, Allocation, Request};
pub use subnet::Subnet;
