//! What a limit costs those who have none.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use shunt_lab::{Conversation, Interrupt, Lab, Node, Protocol, Sandbox};

use super::samples::quantile;

/// Measurements of each kind, in turns, and round trips in each.
const ROUNDS: usize = 30;
const TRIPS: u32 = 2000;

/// Bytes of a datagram.
const LENGTH: usize = 56;

const PORT: u16 = 7000;

/// Microseconds of a round trip between two containers without limits, and the median of the rounds' ratios.
#[derive(Debug, Serialize)]
pub(super) struct Neighbour {
    pub(super) beside: f64,
    pub(super) alone: f64,
    pub(super) ratio: f64,
}

/// Datagrams between two containers without limits, on a node that has a limited one too, and on one that has not.
pub(super) fn compare(interrupt: &Interrupt) -> Result<Neighbour> {
    let lab = Lab::with_all_programs()?;
    let mut sandboxes: Vec<Sandbox> = Vec::new();
    let mut nodes = Vec::new();
    for (name, is_limited) in [("beside", true), ("alone", false)] {
        let node = Node::start(&lab, name)?;
        let plain = node.network("pods", "cni0", &["10.77.0.0/24"]);
        let rate = 100_000_000;
        let limits = json!({ "bandwidth": { "ingressRate": rate, "ingressBurst": rate / 100, "egressRate": rate,
            "egressBurst": rate / 100 } });
        if is_limited {
            let network = plain.clone().with("runtimeConfig", limits);
            sandboxes.push(Sandbox::start(&lab, &node, &network, &format!("{name}-limited"))?);
        }
        for id in ["client", "server"] {
            sandboxes.push(Sandbox::start(&lab, &node, &plain, &format!("{name}-{id}"))?);
        }
        nodes.push(node);
    }
    let mut talks = Vec::new();
    let mut echoes = Vec::new();
    for (client, server) in [(1, 2), (3, 4)] {
        let (client, server): (&Sandbox, &Sandbox) = (&sandboxes[client], &sandboxes[server]);
        let echo = server.echo(server.attachment().ipv4()?.into(), PORT)?;
        let mut talk = Conversation::open(client.namespace(), Protocol::Udp, echo.address())?;
        talk.chat(TRIPS, LENGTH)?;
        talks.push(talk);
        echoes.push(echo);
    }
    let (mut times, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 0..ROUNDS {
        interrupt.check()?;
        let mut took = [0.0; 2];
        for which in [round % 2, 1 - round % 2] {
            let begun = Instant::now();
            talks[which].chat(TRIPS, LENGTH)?;
            took[which] = begun.elapsed().as_secs_f64() * 1e6 / f64::from(TRIPS);
        }
        ratios.push(took[0] / took[1]);
        times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
    }
    let [beside, alone] = &mut times;
    // Containers go before their nodes.
    drop((talks, echoes, sandboxes));
    drop(nodes);
    Ok(Neighbour {
        beside: quantile(beside, 0.5)?,
        alone: quantile(alone, 0.5)?,
        ratio: quantile(&mut ratios, 0.5)?,
    })
}
