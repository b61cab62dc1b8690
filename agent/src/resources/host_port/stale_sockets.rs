//! Connected UDP sockets of the node that bypass the current host ports: they are connected anew, to whom they asked for.
//!
//! The target of a UDP socket is chosen when it connects. A socket that was connected to a container keeps its address after the container
//! is gone, and a socket that was connected before the host port existed never uses it. TCP notices by itself; an unconnected socket is
//! translated per datagram.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use nix::libc;
use shunt_agent_api::{PortMapping, Protocol};
use shunt_dataplane::abi::translation::{Peer, PeerKey};
use shunt_dataplane::nat::connect::{Target, leads_to_by_whomever};
use shunt_dataplane::wire::address::Address;
use shunt_netlink::Connection;
use shunt_netlink::sock_diag::{InetSocket, SocketDiagnosis};

use super::connected_peers::{self, CONNECTED_PEERS};
use super::reconnected::Stale;
use crate::datapath::in_map;
use crate::datapath::maps::lookup;
use crate::explain::live_tables::{LiveTables, Times};
use crate::kernel::KernelError;
use crate::resources::{Node, Refusal};

/// Update flag: only where there is no entry (`BPF_NOEXIST`, linux/bpf.h).
const NOEXIST: u64 = 1;

impl Node {
    /// Cleans up after a change of host ports. Call it after `MAPPINGS` has changed.
    pub(crate) fn follow_mappings(&mut self, had: &[PortMapping], has: &[PortMapping]) {
        let [known, kept] = [had, has].map(|mappings| mappings.iter().collect::<HashSet<_>>());
        let begun: Vec<_> = has.iter().filter(|mapping| !known.contains(mapping)).copied().collect();
        let ended: Vec<_> = had.iter().filter(|mapping| !kept.contains(mapping)).collect();
        if !ended.is_empty() {
            self.sweep_flows_soon();
        }
        if begun.iter().chain(ended).any(|mapping| mapping.protocol == Protocol::Udp) {
            self.reconnect_stale_sockets(&begun);
        }
    }

    /// Has sockets whose host port has another target now, and sockets that bypass the host ports in `begun`, connected anew.
    /// Failures are logged.
    pub(crate) fn reconnect_stale_sockets(&mut self, begun: &[PortMapping]) {
        match self.stale_sockets(begun) {
            Ok(stale) => self.sockets.reconnector.reconnect(stale),
            Err(error) => {
                tracing::warn!(%error, "cannot find stale UDP sockets: they may bypass host ports");
            }
        }
    }

    fn stale_sockets(&mut self, begun: &[PortMapping]) -> Result<Vec<Stale>, Refusal> {
        let mut sockets = SocketDiagnosis::open().map_err(KernelError::from)?;
        let mut routes = Connection::open().map_err(KernelError::from)?;
        let mut stale = Vec::new();
        for socket in sockets.connected_udp().map_err(KernelError::from)? {
            let asked = self.asked_in_vain(&socket, begun, &mut routes)?;
            stale.extend(asked.map(|asked| Stale { socket, asked }));
        }
        Ok(stale)
    }

    /// Whom a socket asked for, where that leads elsewhere by now than it is connected to.
    fn asked_in_vain(
        &mut self,
        socket: &InetSocket,
        begun: &[PortMapping],
        routes: &mut Connection,
    ) -> Result<Option<SocketAddr>, Refusal> {
        let key = connected_peers::key(socket);
        let asked = self.recorded_peer(&key)?;
        let asks = |mapping: &PortMapping| is_for(mapping, socket.remote().ip(), socket.remote().port());
        if asked.is_none() && !begun.iter().any(asks) {
            return Ok(None);
        }
        let now = Target { address: key.address, port: key.port, protocol: libc::IPPROTO_UDP as u8 };
        let asked = asked.map_or(now, |peer| Target { address: peer.address, port: peer.port, ..now });
        let (names, times) = (HashMap::new(), Times { boot: 0, monotonic: 0 });
        let tables = LiveTables::new(&self.datapath.maps, &names, 0, times, routes);
        let leads = leads_to_by_whomever(&asked, Address::default(), &tables);
        tables.into_asked()?;
        let is_stale = leads.unwrap_or(asked) != now;
        Ok(is_stale.then(|| SocketAddr::new(asked.address.into(), asked.port.number())))
    }

    /// What a connected socket has asked for. An entry that an older agent's programs have made, or that found no room, is among those that make
    /// room for others: from now on it is not.
    fn recorded_peer(&mut self, key: &PeerKey) -> Result<Option<Peer>, Refusal> {
        let maps = &mut self.datapath.maps;
        let asked = lookup(&maps.connected_peers, key).map_err(in_map(CONNECTED_PEERS))?;
        if asked.is_some() {
            return Ok(asked);
        }
        let asked = lookup(&maps.peers, key).map_err(in_map("PEERS"))?;
        if let Some(peer) = asked {
            let _full = maps.connected_peers.insert(key, peer, NOEXIST);
        }
        Ok(asked)
    }
}

/// Whether a destination matches a host port, given that the address is the node's.
fn is_for(mapping: &PortMapping, ip: IpAddr, port: u16) -> bool {
    mapping.protocol == Protocol::Udp && mapping.host_port == port && mapping.is_at(ip)
}
