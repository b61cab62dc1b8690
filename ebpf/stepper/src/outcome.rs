//! What a run came to.

use std::collections::BTreeMap;

use crate::socket_buffer::SocketBuffer;

/// Where a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// Out of an interface.
    Port(u32),
    /// Into an interface's peer.
    Peer(u32),
    /// Out of an interface, to a neighbour.
    Neighbor(u32),
    /// In by an interface.
    Into(u32),
}

/// What one run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the program returned.
    pub action: u32,
    /// Where it sent the packet last.
    pub redirect: Option<Redirect>,
    /// Where it sent copies, with the tags beside them.
    pub copies: Vec<(u32, Option<u16>)>,
    /// The packet afterwards.
    pub packet: SocketBuffer,
    /// Instructions executed.
    pub instructions: u64,
    /// Helpers called, by number (`enum bpf_func_id`).
    pub helpers: BTreeMap<i32, u32>,
}
