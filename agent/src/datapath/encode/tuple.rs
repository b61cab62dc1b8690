//! The tuples of connection tracking, as the programs have them.

use shunt_dataplane::abi::translation::TupleKey;
use shunt_netlink::conntrack::Tuple;

/// The tuple as its packets come from `domain`.
pub fn tuple_key(domain: u32, tuple: &Tuple) -> TupleKey {
    TupleKey {
        domain,
        source_port: tuple.source.port().into(),
        destination_port: tuple.destination.port().into(),
        source: tuple.source.ip().into(),
        destination: tuple.destination.ip().into(),
        protocol: tuple.protocol,
        pad: [0; 3],
    }
}
