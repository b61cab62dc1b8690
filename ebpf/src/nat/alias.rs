//! alias: a port of a container by another number, for a socket of the node that asks it by several names.
//!
//! An unconnected UDP socket learns of a datagram only where it is from, so the answers to what it has asked by two names of the node have to
//! differ in that. The first name leads to the container's own port. Each further one leads to an alias, a port that is the container's for
//! this socket's port only: [`asked`] writes the container's port in its place, and the alias as the source port, by which [`answered`]
//! knows the answer. So the container sees another source port by each name, as it may by the kernel's NAT.
//!
//! The errors that the container sends about such datagrams are not translated: they reach no socket.

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::abi::{Alias, AliasKey};
use crate::nat::connect::Target;
use crate::nat::port_change;
use crate::nat::segment::{self, Segment};
use crate::wire::address::{Address, L4Port};
use crate::wire::packet::Packet;
use crate::wire::{Frame, Network, Protocol, network};

/// Aliases are above the ports that the kernel gives to sockets by default (`ip_local_port_range`).
const FIRST: u16 = 61_000;
const COUNT: u64 = (u16::MAX - FIRST) as u64 + 1;

/// So many are tried.
const ATTEMPTS: u64 = 8;

/// How long after its last question an alias is its socket's, in nanoseconds: as connection tracking knows a flow of datagrams
/// (`nf_conntrack_udp_timeout_stream`).
const HELD: u64 = 120_000_000_000;

/// How long a question need not renew it, in nanoseconds.
const RENEWED: u64 = 1_000_000_000;

/// An unconnected UDP socket of the node that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Its cookie.
    pub socket: u64,
    /// Its port.
    pub port: L4Port,
    /// The address of the node that its datagrams have behind the bridge.
    pub source: Address,
    /// The name of the node by which it asks.
    pub name: Address,
    /// The port that it asks.
    pub name_port: L4Port,
}

/// The alias of the container's port `to` by which `asker` asks; makes one where it has none. None where there is none to have.
#[inline(always)]
pub fn claim<T: Tables>(asker: &Asker, to: &Target, tables: &T) -> Option<L4Port> {
    let now = tables.boot_time();
    let alias = Alias {
        socket: asker.socket,
        asked: now,
        name: asker.name,
        name_port: asker.name_port,
        socket_port: asker.port,
        port: to.port,
        pad: [0; 2],
    };
    let start = scattered(asker);
    for attempt in 0..ATTEMPTS {
        let port = L4Port::from(FIRST + ((start + attempt) % COUNT) as u16);
        let key = AliasKey { address: to.address, port, pad: [0; 2] };
        match tables.alias(&key) {
            Some(known) if is_same(&known, &alias) => {
                if now.saturating_sub(known.asked) < RENEWED {
                    return Some(port);
                }
                if !is_sockets(asker, to, port, tables) {
                    tables.renew_alias(&key, &alias);
                    return Some(port);
                }
                tables.forget_alias(&key);
                continue;
            }
            Some(known) if is_held(&known, now) => continue,
            Some(_) => tables.forget_alias(&key),
            None => {}
        }
        if !is_sockets(asker, to, port, tables) && tables.claim_alias(&key, &alias) {
            return Some(port);
        }
    }
    None
}

/// Where the search for an asker's alias begins.
#[inline(always)]
fn scattered(asker: &Asker) -> u64 {
    let [a, b, c, d] = asker.name.words();
    let name = u64::from(a ^ c) << 32 | u64::from(b ^ d);
    let mixed = asker.socket ^ name ^ u64::from(asker.name_port.half());
    // Knuth's multiplicative hashing, by the golden ratio of 64 bits.
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Whether both are of one socket, and of one name and port.
#[inline(always)]
fn is_same(one: &Alias, other: &Alias) -> bool {
    one.socket == other.socket
        && one.name.is(other.name)
        && one.name_port.half() == other.name_port.half()
        && one.socket_port.half() == other.socket_port.half()
        && one.port.half() == other.port.half()
}

/// Whether an alias is its socket's still.
#[inline(always)]
fn is_held(alias: &Alias, now: u64) -> bool {
    now.saturating_sub(alias.asked) < HELD
}

/// Whether another socket of the node has `port`, and would lose the container's answers. It has the address by which the kernel sends to the
/// container, or any.
#[inline(always)]
fn is_sockets<T: Tables>(asker: &Asker, to: &Target, port: L4Port, tables: &T) -> bool {
    tables.has_socket(&TupleKey {
        domain: 0,
        source_port: port,
        destination_port: to.port,
        source: asker.source,
        destination: to.address,
        protocol: to.protocol,
        pad: [0; 3],
    })
}

/// The name by which a socket with the port `own` has asked what answers from `port` of `address`. Sockets that share a port (`SO_REUSEPORT`) get
/// each other's answers.
#[inline(always)]
pub fn name<T: Tables>(own: L4Port, address: Address, port: L4Port, tables: &T) -> Option<(Address, L4Port)> {
    let alias = tables.alias(&AliasKey { address, port, pad: [0; 2] })?;
    (alias.socket_port.half() == own.half()).then_some((alias.name, alias.name_port))
}

/// The tuple that the container sees of a datagram with this one, if a socket of the node has sent it to an alias.
#[inline(always)]
pub fn of_question<T: Tables>(key: &TupleKey, tables: &T) -> Option<TupleKey> {
    let alias = held(key.destination, key.destination_port, tables)?;
    (alias.socket_port.half() == key.source_port.half()).then_some(TupleKey {
        source_port: key.destination_port,
        destination_port: alias.port,
        ..*key
    })
}

/// The tuple that the socket sees of a datagram of a container with this one, if that answers such a datagram.
#[inline(always)]
pub fn of_answer<T: Tables>(key: &TupleKey, tables: &T) -> Option<TupleKey> {
    let alias = held(key.source, key.destination_port, tables)?;
    // Somebody outside may have that port, too.
    let is_answer = alias.port.half() == key.source_port.half() && tables.is_local(&key.destination);
    is_answer.then_some(TupleKey {
        source_port: key.destination_port,
        destination_port: alias.socket_port,
        ..*key
    })
}

#[inline(always)]
fn held<T: Tables>(address: Address, port: L4Port, tables: &T) -> Option<Alias> {
    let alias = tables.alias(&AliasKey { address, port, pad: [0; 2] })?;
    is_held(&alias, tables.boot_time()).then_some(alias)
}

/// Gives a datagram that a socket of the node has sent to an alias, in `frame` out of the bridge `domain`, the ports that the container
/// knows. Whether it is one; every other packet stays as it is.
#[inline(always)]
pub fn asked<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, domain: u32, tables: &T) -> bool {
    if !is_datagram(packet, frame) {
        return false;
    }
    let Some(segment) = segment::read(packet, frame, domain) else { return false };
    segment.is_datagram() && rename(packet, &segment, of_question(&segment.key, tables))
}

/// Gives an answer of the container to such a datagram the ports that the socket knows. Whether it is one.
#[inline(always)]
pub fn answered<P: Packet, T: Tables>(packet: &mut P, segment: &Segment, tables: &T) -> bool {
    segment.is_datagram() && rename(packet, segment, of_answer(&segment.key, tables))
}

/// Whether a frame may be a datagram's, without a look at more than its IP header: most of what a node sends is not.
#[inline(always)]
fn is_datagram<P: Packet>(packet: &P, frame: &Frame) -> bool {
    match network(packet, frame) {
        Ok(Network::Ip(ip)) => ip.protocol == Protocol::UDP,
        Ok(_) => false,
        Err(_) => true,
    }
}

#[inline(always)]
fn rename<P: Packet>(packet: &mut P, segment: &Segment, becomes: Option<TupleKey>) -> bool {
    let Some(becomes) = becomes else { return false };
    port_change::write(packet, segment, &becomes);
    true
}
