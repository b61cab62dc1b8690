//! Host ports: where packets enter, the node's own sockets, and what may hold one.

mod applied;
mod ingress;
mod nat_ingress;
mod reverse_paths;
mod sockets;
mod stale_sockets;
mod state;
mod validation;

pub(crate) use self::ingress::Ingress;
pub(crate) use self::nat_ingress::NAT_INGRESS;
pub(crate) use self::reverse_paths::ReversePaths;
pub(crate) use self::sockets::SocketPrograms;
pub(crate) use self::state::{NatIngress, Sockets};
