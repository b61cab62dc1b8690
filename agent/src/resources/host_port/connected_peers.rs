//! `CONNECTED_PEERS`: the agent removes the entries of UDP sockets that are closed, or are connected to another peer by now. Nothing else makes
//! room there, for such a socket may talk for months.
//!
//! The keys are read first, then the kernel lists the sockets, so a socket that lives is in the list, with two exceptions: the program writes the
//! entry shortly before the kernel connects the socket, and a list of many sockets may lack one while others close. So an entry is removed by
//! the second sweep in a row that does not find its socket. Cookies are never used again.

use std::collections::HashSet;
use std::mem::take;
use std::path::{Path, PathBuf};

use aya::maps::{HashMap, Map, MapData, MapError};
use shunt_dataplane::abi::MAX_PEERS;
use shunt_dataplane::abi::translation::{Peer, PeerKey};
use shunt_dataplane::wire::address::Address;
use shunt_netlink::sock_diag::{InetSocket, SocketDiagnosis};

use crate::datapath::{Datapath, in_map};
use crate::kernel::KernelError;

/// The map's name.
pub(crate) const CONNECTED_PEERS: &str = "CONNECTED_PEERS";

/// The keys whose sockets the last sweep has not found.
pub(crate) type Unfound = HashSet<PeerKey>;

/// The key of a connected socket.
pub(super) fn key(socket: &InetSocket) -> PeerKey {
    let remote = socket.remote();
    PeerKey {
        socket: socket.cookie(),
        address: Address::from(remote.ip()),
        port: remote.port().into(),
        pad: [0; 6],
    }
}

/// Removes the entries without a socket, in the map that is pinned there. Returns how many. Takes long where the node has many sockets.
///
/// # Errors
/// The kernel's.
pub(crate) fn sweep(pin: &Path, unfound: &mut Unfound) -> Result<usize, KernelError> {
    let before = take(unfound);
    let mut map = open(pin, Map::HashMap).map_err(in_map(CONNECTED_PEERS))?;
    let keys = keys(&map).map_err(in_map(CONNECTED_PEERS))?;
    if keys.is_empty() {
        return Ok(0);
    }
    let connected: HashSet<PeerKey> = SocketDiagnosis::open()?.connected_udp()?.iter().map(key).collect();
    let (stale, first) = stale(keys, &connected, &before);
    *unfound = first;
    Ok(stale.iter().filter(|key| map.remove(key).is_ok()).count())
}

/// The keys without a socket: those that the last sweep has not found either, and the others.
fn stale(keys: Vec<PeerKey>, connected: &HashSet<PeerKey>, before: &Unfound) -> (Unfound, Unfound) {
    keys.into_iter().filter(|key| !connected.contains(key)).partition(|key| before.contains(key))
}

/// Writes the entries to `PEERS`, for an older agent's programs, which know that map only.
pub(crate) fn leave(datapath: &Datapath) {
    match copy(|name| datapath.map_pin(name)) {
        Ok(copied) => tracing::debug!(copied, "peers of connected UDP sockets left for the next agent"),
        Err(error) => {
            tracing::warn!(%error, "peers of connected UDP sockets cannot be left to an older agent");
        }
    }
}

fn copy(pin: impl Fn(&str) -> PathBuf) -> Result<usize, MapError> {
    let connected = open(&pin(CONNECTED_PEERS), Map::HashMap)?;
    let mut peers = open(&pin("PEERS"), Map::LruHashMap)?;
    let entries: Vec<(PeerKey, Peer)> = connected.iter().take(MOST_STEPS).filter_map(Result::ok).collect();
    Ok(entries.iter().filter(|(key, peer)| peers.insert(key, peer, 0).is_ok()).count())
}

/// A removed entry makes the kernel's walk begin again, so the number of steps is limited.
const MOST_STEPS: usize = 2 * MAX_PEERS as usize;

fn keys(map: &HashMap<MapData, PeerKey, Peer>) -> Result<Vec<PeerKey>, MapError> {
    map.keys().take(MOST_STEPS).collect()
}

fn open(pin: &Path, kind: fn(MapData) -> Map) -> Result<HashMap<MapData, PeerKey, Peer>, MapError> {
    HashMap::try_from(kind(MapData::from_pin(pin)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(socket: u64, port: u16) -> PeerKey {
        PeerKey { socket, port: port.into(), ..PeerKey::default() }
    }

    #[test]
    fn an_entry_goes_with_the_second_sweep_that_does_not_find_its_socket() {
        let connected = HashSet::from([of(1, 80), of(2, 81)]);
        // The second socket is connected to somebody else by now, the third is closed.
        let keys = || vec![of(1, 80), of(2, 80), of(3, 80)];
        let (gone, unfound) = stale(keys(), &connected, &Unfound::new());
        assert_eq!((gone.len(), &unfound), (0, &HashSet::from([of(2, 80), of(3, 80)])));
        let (gone, unfound) = stale(keys(), &connected, &unfound);
        assert_eq!((gone, unfound.len()), (HashSet::from([of(2, 80), of(3, 80)]), 0));
    }

    #[test]
    fn an_entry_whose_socket_is_found_again_has_its_time_from_the_beginning() {
        let (key, none) = (of(1, 80), HashSet::new());
        let (_, unfound) = stale(vec![key], &none, &Unfound::new());
        let (_, unfound) = stale(vec![key], &HashSet::from([key]), &unfound);
        assert!(unfound.is_empty());
        assert_eq!(stale(vec![key], &none, &unfound), (none, Unfound::from([key])));
    }
}
