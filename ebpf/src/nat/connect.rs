//! connect: a process of the node connects, or sends, to a port of the node that leads to a container.
//!
//! Its packets would never meet a link. So the socket is led to the container before there is any packet, nothing has to
//! be translated after that, and whoever asks whom it talks to is told the name that it asked for.

use crate::Tables;
use crate::abi::translation::MappingKey;
use crate::wire::address::{Address, L4Port};

/// One end of a connection that is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address; an IPv4 one mapped, whichever kind of socket asks. The unspecified one is the node's loopback, as
    /// for the kernel.
    pub address: Address,
    /// Its port.
    pub port: L4Port,
    /// IP protocol number.
    pub protocol: u8,
}

/// Where `target` leads a socket that is bound to `bound` (unspecified: to nothing yet), if it is a mapped port of the
/// node: of the very address, else of any of its own, loopback's too.
///
/// A socket that is bound to the loopback is left alone: nothing gets from there to a container.
#[inline(always)]
pub fn leads_to<T: Tables>(target: &Target, bound: Address, tables: &T) -> Option<Target> {
    let asked = target.address.or_loopback();
    let mut key = MappingKey { address: asked, port: target.port, protocol: target.protocol, pad: 0 };
    let mapping = match tables.mapping(&key) {
        Some(mapping) => mapping,
        None => {
            key.address = asked.unspecified();
            tables.mapping(&key)?
        }
    };
    let is_nodes = asked.is_loopback() || tables.is_local(&asked);
    if !is_nodes || bound.is_loopback() {
        return None;
    }
    let address = if asked.is_v4() { mapping.v4 } else { mapping.v6 };
    // A container without an address of the family that was asked for has none to connect to.
    (!address.is_unspecified()).then_some(Target { address, port: mapping.port, ..*target })
}
