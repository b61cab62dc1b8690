//! connect: DNAT of the node's own sockets, which connect or send to a host port.
//!
//! Their packets never meet a link, so the socket is redirected to the container before there is a packet. Nothing is translated
//! after that, and `getpeername` returns the address that was asked for.

use crate::Tables;
use crate::abi::translation::{MAPPING_HEEDED, Mapping, MappingKey};
use crate::wire::address::{Address, L4Port};

/// The destination of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address; IPv4 mapped, for both kinds of sockets. The unspecified one is the node's loopback, as in the
    /// kernel.
    pub address: Address,
    /// The port.
    pub port: L4Port,
    /// IP protocol number.
    pub protocol: u8,
}

/// The container that a socket bound to `bound` (unspecified: unbound) is redirected to where `target` is a host port: of that address,
/// else of any address of the node, loopback included.
///
/// A socket bound to the loopback is left alone: nothing gets from there to a container. So is one that asks an address of the node where others' rules
/// are asked who may use the host port: the kernel's own rule translates its packets. The loopback has no such way.
#[inline(always)]
pub fn leads_to<T: Tables>(target: &Target, bound: Address, tables: &T) -> Option<Target> {
    lead(target, bound, tables, MAPPING_HEEDED).map(|(to, _)| to)
}

/// The same with the host port's mapping.
#[inline(always)]
pub fn leads_by<T: Tables>(target: &Target, bound: Address, tables: &T) -> Option<(Target, Mapping)> {
    lead(target, bound, tables, MAPPING_HEEDED)
}

/// [`leads_to`], whoever translates.
#[inline(always)]
pub fn leads_to_by_whomever<T: Tables>(target: &Target, bound: Address, tables: &T) -> Option<Target> {
    lead(target, bound, tables, 0).map(|(to, _)| to)
}

/// But for the host ports with one of the flags in `but`.
#[inline(always)]
fn lead<T: Tables>(target: &Target, bound: Address, tables: &T, but: u16) -> Option<(Target, Mapping)> {
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
    let is_kernels = mapping.flags & but != 0 && !asked.is_loopback();
    if !is_nodes || bound.is_loopback() || is_kernels {
        return None;
    }
    let address = if asked.is_v4() { mapping.v4 } else { mapping.v6 };
    // A container without an address of the family that was asked for has none to connect to.
    (!address.is_unspecified()).then_some((Target { address, port: mapping.port, ..*target }, mapping))
}
