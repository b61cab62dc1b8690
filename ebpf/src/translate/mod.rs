//! Host ports: packets from outside become a container's, its answers become the node's. Masquerading: what a container sends
//! to the world becomes the node's, and what returns the container's.
//!
//! [`request`], [`outgoing`] and [`answer`] decide, with the help of [`connection`]; [`rewrite`] edits, with the help of [`checksum`].
//! For an ICMP error about either, [`quote`] decides and [`requote`] edits. Between the two everything is known that could still keep the packet from its receiver.

pub mod answer;
pub mod checksum;
pub mod connect;
pub mod connection;
pub mod crc32c;
pub mod outgoing;
pub mod ports_mending;
pub mod quote;
pub mod request;
pub mod requote;
pub mod rewrite;
