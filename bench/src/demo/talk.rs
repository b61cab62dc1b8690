//! Real traffic: every pair of containers, both families, both protocols, each byte compared.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use anyhow::{Context, Result};
use shunt_lab::{Conversation, Echo, Interrupt, Namespace, Protocol};

use super::introduction::{Cast, HOST_PORT, NODE, PORT};
use crate::screen::{Paint, Screen, pad, right, thousands};

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
        let _echoes = listen(server.namespace(), &server.addresses())?;
        let targets: Vec<_> = server.addresses().iter().map(|address| (*address, PORT).into()).collect();
        converse(screen, &who, client.namespace(), &targets)?;
    }
    Ok(())
}

/// Lets the node talk to a container: that is the kernel's, on shunt as on any bridge.
pub(super) fn with_the_node(screen: &mut Screen, cast: &Cast) -> Result<()> {
    cast.node.settle()?;
    let server = &cast.actors[0];
    let who = format!("the node ⇄ {}", server.id());
    let _echoes = listen(server.namespace(), &server.addresses())?;
    let targets: Vec<_> = server.addresses().iter().map(|address| (*address, PORT).into()).collect();
    converse(screen, &who, cast.node.namespace(), &targets)
}

/// Lets a host outside, another container and the node itself talk to the first container, by the node's port that leads
/// there.
pub(super) fn by_the_nodes_port(screen: &mut Screen, cast: &Cast) -> Result<()> {
    let (server, neighbor) = (&cast.actors[0], &cast.actors[1]);
    let aside =
        format!("{} of the node leads to {}'s {PORT}; no iptables, no conntrack", HOST_PORT, server.id());
    screen.heading("By a port of the node", &aside)?;
    cast.node.settle()?;
    let _echoes = listen(server.namespace(), &server.addresses())?;
    let at = |names: [&str; 2]| -> Result<Vec<SocketAddr>> {
        names.iter().map(|name| Ok((name.parse::<IpAddr>()?, HOST_PORT).into())).collect()
    };
    let (world, own) = (at(NODE)?, at(["127.0.0.1", "::1"])?);
    converse(screen, "a host outside", &cast.outside, &world)?;
    converse(screen, neighbor.id(), neighbor.namespace(), &world)?;
    converse(screen, "the node's localhost", cast.node.namespace(), &own)
}

fn listen(server: &Namespace, addresses: &[IpAddr]) -> Result<Vec<Echo>> {
    addresses.iter().map(|address| Echo::listen(server, *address, PORT)).collect()
}

fn converse(screen: &mut Screen, who: &str, client: &Namespace, targets: &[SocketAddr]) -> Result<()> {
    let begun = Instant::now();
    for target in targets {
        for (protocol, length) in [(Protocol::Tcp, STREAM), (Protocol::Udp, DATAGRAM)] {
            let mut conversation = Conversation::open(client, protocol, *target)?;
            conversation.chat(ROUNDS, length).with_context(|| format!("{who} over {protocol:?}"))?;
        }
    }
    let rounds = u64::from(ROUNDS) * 2 * targets.len() as u64;
    let megabytes = rounds as f64 * STREAM as f64 / 1e6;
    let what = format!("{megabytes:.0} MB of TCP, {} datagrams of UDP, IPv4 and IPv6", thousands(rounds));
    let took = right(&format!("{:.0} ms", begun.elapsed().as_secs_f64() * 1000.0), 8);
    screen.done(&format!("{} {what}{}", pad(who, 20), Paint::Dim.on(&took)))
}
