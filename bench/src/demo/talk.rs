//! Real traffic: every pair of containers, both families, both protocols, each byte compared.

use std::net::IpAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use shunt_lab::{Conversation, Echo, Interrupt, Namespace, Protocol};

use super::introduction::Cast;
use crate::screen::{Paint, Screen, pad, right, thousands};

/// Where the containers' echo servers listen.
const PORT: u16 = 7000;

/// Messages of one conversation.
const ROUNDS: u32 = 400;

/// Bytes of a TCP message, large enough for segmentation offload to have something to do.
const STREAM: usize = 24_000;

/// Bytes of a datagram.
const DATAGRAM: usize = 1200;

/// Lets every container talk to the next.
pub(super) fn between_containers(screen: &mut Screen, interrupt: &Interrupt, cast: &Cast) -> Result<()> {
    screen.heading("They talk", "there and back, every byte compared")?;
    let actors = &cast.actors;
    for (index, server) in actors.iter().enumerate() {
        interrupt.check()?;
        let client = &actors[(index + 1) % actors.len()];
        let who = format!("{} ⇄ {}", client.id(), server.id());
        converse(screen, &who, client.namespace(), server.namespace(), &server.addresses())?;
    }
    Ok(())
}

/// Lets the node talk to a container: that is the kernel's, on shunt as on any bridge.
pub(super) fn with_the_node(screen: &mut Screen, cast: &Cast) -> Result<()> {
    cast.node.settle()?;
    let server = &cast.actors[0];
    let who = format!("the node ⇄ {}", server.id());
    let addresses = server.addresses();
    converse(screen, &who, cast.node.namespace(), server.namespace(), &addresses)
}

fn converse(
    screen: &mut Screen,
    who: &str,
    client: &Namespace,
    server: &Namespace,
    addresses: &[IpAddr],
) -> Result<()> {
    let begun = Instant::now();
    for address in addresses {
        let echo = Echo::listen(server, *address, PORT)?;
        for (protocol, length) in [(Protocol::Tcp, STREAM), (Protocol::Udp, DATAGRAM)] {
            let mut conversation = Conversation::open(client, protocol, echo.address())?;
            conversation.chat(ROUNDS, length).with_context(|| format!("{who} over {protocol:?}"))?;
        }
    }
    let rounds = u64::from(ROUNDS) * 2 * addresses.len() as u64;
    let megabytes = rounds as f64 * STREAM as f64 / 1e6;
    let what = format!("{megabytes:.0} MB of TCP, {} datagrams of UDP, IPv4 and IPv6", thousands(rounds));
    let took = right(&format!("{:.0} ms", begun.elapsed().as_secs_f64() * 1000.0), 8);
    screen.done(&format!("{} {what}{}", pad(who, 20), Paint::Dim.on(&took)))
}
