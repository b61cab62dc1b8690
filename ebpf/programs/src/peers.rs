//! `CONNECTED_PEERS` and `PEERS`: the addresses that sockets of the node asked for before they were redirected to containers.
//!
//! A connected UDP socket may talk for months, and nobody tells it that its container is gone but the agent, which finds it by its entry. So the
//! entries of such sockets are in a map in which nothing makes room.

use shunt_dataplane::abi::translation::{Peer, PeerKey};

use crate::maps::{CONNECTED_PEERS, PEERS};

/// Update flag: whether there is an entry or not (`BPF_ANY`, linux/bpf.h).
const ANY: u64 = 0;

/// What the socket asked for.
#[inline(always)]
pub(crate) fn asked(key: &PeerKey) -> Option<Peer> {
    // SAFETY: the entry is copied, and is written as a whole by the same socket only.
    if let Some(peer) = unsafe { CONNECTED_PEERS.get(key) } {
        return Some(*peer);
    }
    // SAFETY: as above.
    unsafe { PEERS.get(key) }.copied()
}

/// Records what the socket asks for; `is_lasting`: it is a UDP socket that connects. Without the entry the container is reported as the peer.
#[inline(always)]
pub(crate) fn record(key: &PeerKey, peer: &Peer, is_lasting: bool) {
    if is_lasting && CONNECTED_PEERS.insert(key, peer, ANY).is_ok() {
        return;
    }
    let _unnamed = PEERS.insert(key, peer, ANY);
}
