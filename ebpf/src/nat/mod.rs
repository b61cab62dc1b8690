//! Network address translation.

pub mod clone_to_host;
pub mod connect;
pub mod connection;
pub mod dnat;
pub mod embedded;
pub mod frag_needed;
pub mod fragments;
pub mod icmp_error;
pub mod masquerade;
pub mod reply;
pub mod rewrite;
pub mod segment;
pub mod snat;
