//! Network address translation: host ports (DNAT) and masquerading (SNAT), without the kernel's conntrack.
//!
//! [`dnat`], [`reply`], [`snat`] and [`masquerade`] decide, over the state in [`connection`]; [`rewrite`] edits. [`fragments`] and ICMP
//! errors ([`embedded`], [`icmp_error`]) follow their connection; [`crate::stages::share`] bounds how many a container has, and [`claim`] keeps
//! theirs apart from the kernel's. Between decision and edit
//! every check has passed that could keep a packet from its receiver.

pub mod alias;
pub mod carry;
pub mod claim;
pub mod clone_to_host;
pub mod connect;
pub mod connection;
pub mod dnat;
pub mod embedded;
pub mod frag_needed;
pub mod fragments;
pub mod icmp_error;
pub mod masquerade;
pub mod port_change;
pub mod reply;
pub mod reverse_path;
pub mod rewrite;
pub mod segment;
pub mod snat;
