//! An association of SCTP over raw sockets, as a conntrack wants to see it.

use std::net::IpAddr;

use crate::sctp::{Packet, Raw};

/// Kinds of chunks (RFC 9260 section 3.2).
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const COOKIE_ECHO: u8 = 10;
const COOKIE_ACK: u8 = 11;

const OF_CLIENT: [u8; 4] = *b"clnt";
const OF_SERVER: [u8; 4] = *b"srvr";

/// Who sends a packet.
#[derive(Clone, Copy)]
enum From {
    Client,
    Server,
}

fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    [&[kind, flags][..], &length.to_be_bytes(), value].concat()
}

/// An association that begins, and a message each way: who sends it, its verification tag, and its chunk. A conntrack looks at
/// all of that.
fn association() -> Vec<(From, [u8; 4], Vec<u8>)> {
    let window_streams_sequence: [u8; 12] = [0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1];
    let init = [&OF_CLIENT[..], &window_streams_sequence].concat();
    let cookie = [0, 7, 0, 8, b'c', b'o', b'o', b'k'];
    let init_ack = [&OF_SERVER[..], &window_streams_sequence, &cookie].concat();
    let message = [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], &[7; 1000]].concat();
    vec![
        (From::Client, [0; 4], chunk(INIT, 0, &init)),
        (From::Server, OF_CLIENT, chunk(INIT_ACK, 0, &init_ack)),
        (From::Client, OF_SERVER, chunk(COOKIE_ECHO, 0, b"cook")),
        (From::Server, OF_CLIENT, chunk(COOKIE_ACK, 0, &[])),
        (From::Client, OF_SERVER, chunk(DATA, 3, &message)),
        (From::Server, OF_CLIENT, chunk(DATA, 3, &message)),
    ]
}

/// One from `client`, which has this address, to a port of the node's `address` that leads to an `inner` one of the server's:
/// what each end gets, and from whom.
pub(crate) fn associate(
    (client, client_address): (&Raw, IpAddr),
    address: IpAddr,
    server: &Raw,
    [host, inner]: [u16; 2],
) -> Vec<(Packet, IpAddr)> {
    let exchange = |(from, tag, payload)| match from {
        From::Client => {
            client.send(&Packet { ports: [40_000, host], tag, payload }, address);
            server.receive()
        }
        From::Server => {
            server.send(&Packet { ports: [inner, 40_000], tag, payload }, client_address);
            client.receive()
        }
    };
    association().into_iter().map(exchange).collect()
}

/// The first packet of one.
pub(crate) fn beginning(ports: [u16; 2]) -> Packet {
    let [(_, tag, payload), ..] = &association()[..] else { unreachable!("it has six") };
    Packet { ports, tag: *tag, payload: payload.clone() }
}
