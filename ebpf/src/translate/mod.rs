//! What a translated packet needs beside new addresses: checksums that fit them, and a connection that is followed.
//!
//! Nothing here touches a packet. The functions say what a field becomes, from what it is and from what changes, so that
//! everything is known before the first edit.

pub mod checksum;
pub mod connection;
pub mod crc32c;
