//! Aborts connected UDP sockets of the node that bypass the current host ports, so that their owners connect again.
//!
//! The target of a UDP socket is chosen when it connects. A socket that was connected to a container keeps its address after the container
//! is gone, and a socket that was connected before the host port existed never uses it. TCP notices by itself; an unconnected socket is
//! translated per datagram.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use nix::libc;
use shunt_agent_api::{PortMapping, Protocol};
use shunt_dataplane::abi::translation::PeerKey;
use shunt_dataplane::nat::connect::{Target, leads_to_by_whomever};
use shunt_dataplane::wire::address::Address;
use shunt_netlink::Connection;
use shunt_netlink::sock_diag::{InetSocket, SocketDiagnosis};

use crate::datapath::in_map;
use crate::datapath::maps::lookup;
use crate::explain::live_tables::{LiveTables, Times};
use crate::kernel::KernelError;
use crate::resources::{Node, Refusal};

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
            self.abort_stale_sockets(&begun);
        }
    }

    /// Aborts sockets whose host port has another target now, and sockets that bypass the host ports in
    /// `begun`. Failures are logged.
    pub(crate) fn abort_stale_sockets(&mut self, begun: &[PortMapping]) {
        match self.abort_stale(begun) {
            Ok(0) => {}
            Ok(aborted) => {
                tracing::info!(aborted, "aborted connected UDP sockets whose host port has another target");
            }
            Err(error) => {
                tracing::warn!(%error, "cannot abort stale UDP sockets: they may bypass host ports");
            }
        }
    }

    fn abort_stale(&mut self, begun: &[PortMapping]) -> Result<usize, Refusal> {
        let mut sockets = SocketDiagnosis::open().map_err(KernelError::from)?;
        let mut routes = Connection::open().map_err(KernelError::from)?;
        let mut aborted = 0;
        for socket in sockets.connected_udp().map_err(KernelError::from)? {
            if self.is_stale(&socket, begun, &mut routes)? {
                sockets.abort(&socket).map_err(KernelError::from)?;
                aborted += 1;
            }
        }
        Ok(aborted)
    }

    fn is_stale(
        &self,
        socket: &InetSocket,
        begun: &[PortMapping],
        routes: &mut Connection,
    ) -> Result<bool, Refusal> {
        let (address, port) = (Address::from(socket.remote().ip()), socket.remote().port().into());
        let key = PeerKey { socket: socket.cookie(), address, port, pad: [0; 6] };
        let asked = lookup(&self.datapath.maps.peers, &key).map_err(in_map("PEERS"))?;
        let asks = |mapping: &PortMapping| is_for(mapping, socket.remote().ip(), socket.remote().port());
        if asked.is_none() && !begun.iter().any(asks) {
            return Ok(false);
        }
        let now = Target { address, port, protocol: libc::IPPROTO_UDP as u8 };
        let asked = asked.map_or(now, |peer| Target { address: peer.address, port: peer.port, ..now });
        let (names, times) = (HashMap::new(), Times { boot: 0, monotonic: 0 });
        let tables = LiveTables::new(&self.datapath.maps, &names, 0, times, routes);
        let leads = leads_to_by_whomever(&asked, Address::default(), &tables);
        tables.into_asked()?;
        Ok(leads.unwrap_or(asked) != now)
    }
}

/// Whether a destination matches a host port, given that the address is the node's.
fn is_for(mapping: &PortMapping, ip: IpAddr, port: u16) -> bool {
    mapping.protocol == Protocol::Udp && mapping.host_port == port && mapping.is_at(ip)
}
