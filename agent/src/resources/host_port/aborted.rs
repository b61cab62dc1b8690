//! Ends the TCP connections of the node's own sockets to a container that is gone: they are connected to its address, and would wait for
//! an answer until they give up.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::thread;

use shunt_agent_api::{BridgePort, Protocol};
use shunt_netlink::NetlinkError;
use shunt_netlink::sock_diag::SocketDiagnosis;

/// Aborts them beside the agent's thread: the kernel walks all of the node's connections.
pub(crate) fn abort_connections_to(port: &BridgePort) {
    let tcp = port.mappings.iter().filter(|mapping| mapping.protocol == Protocol::Tcp);
    let ends = tcp.flat_map(|mapping| port.ips.iter().map(|ip| SocketAddr::new(*ip, mapping.container_port)));
    let ends: HashSet<_> = ends.collect();
    if ends.is_empty() {
        return;
    }
    let key = port.key.clone();
    let work = move || match abort(&ends) {
        Ok(0) => {}
        Ok(aborted) => {
            tracing::info!(%key, aborted, "aborted the node's connections to a container that is gone");
        }
        Err(error) => {
            tracing::warn!(%key, %error, "cannot abort the node's connections to a container that is gone");
        }
    };
    if let Err(error) = thread::Builder::new().name("abort".into()).spawn(work) {
        tracing::warn!(%error, "cannot start a thread to abort connections");
    }
}

fn abort(ends: &HashSet<SocketAddr>) -> Result<usize, NetlinkError> {
    let mut sockets = SocketDiagnosis::open()?;
    let mut aborted = 0;
    for socket in sockets.connected_tcp()?.iter().filter(|socket| ends.contains(&socket.remote())) {
        sockets.abort(socket)?;
        aborted += 1;
    }
    Ok(aborted)
}
