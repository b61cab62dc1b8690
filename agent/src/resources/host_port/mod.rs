//! Host ports: where packets enter, the node's own sockets, and what may hold one.

mod aborted;
mod applied;
pub(crate) mod connected_peers;
mod forgotten;
mod held_sockets;
mod ingress;
mod local_routes;
mod nat_ingress;
mod observed;
mod reconnected;
mod sockets;
mod stale_sockets;
mod state;
mod validation;
mod ways_in;

pub(crate) use self::aborted::abort_connections_to;
pub(crate) use self::ingress::Ingress;
pub(crate) use self::nat_ingress::NAT_INGRESS;
pub(crate) use self::sockets::SocketPrograms;
pub(crate) use self::state::{NatIngress, Sockets};
