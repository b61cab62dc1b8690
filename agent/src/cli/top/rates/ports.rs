//! Rates of ports and of drops.

use std::collections::HashMap;

use serde::Serialize;
use shunt_agent_api::{DropReport, Limits, PortReport, Traffic};

use super::span::Span;
use crate::cli::answer_text::pod_text;
use crate::cli::top::escape::escape;
use crate::cli::top::sample::Sample;

/// From this share of a limit on a container is held back by it: a queue that is full gives no more than its rate, and the headers that
/// it does not count make less of it.
const FULL: f64 = 0.9;

/// What of a container's id is shown.
const SHORT: usize = 13;

/// One attachment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PortRates {
    pub(crate) network: String,
    pub(crate) container: String,
    pub(crate) ifname: String,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) host_ifname: String,
    /// What the container sends; none where it is not known yet.
    pub(crate) sent: Option<Rates>,
    /// What the container is sent.
    pub(crate) received: Option<Rates>,
    /// In bits a second.
    pub(crate) limits: Limits,
    /// What holds the container back now: `egress`, `ingress` (its limits), `storm`, `connections`.
    pub(crate) throttled: Vec<&'static str>,
    pub(crate) drops: Vec<DropRate>,
    pub(crate) kernels_way: Vec<String>,
    /// The pod or container and its interface, safe for a terminal.
    #[serde(skip)]
    pub(crate) name: String,
}

/// One direction of a port, a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Rates {
    pub(crate) bits: f64,
    pub(crate) fast: f64,
    pub(crate) kernel: f64,
    pub(crate) dropped: f64,
}

/// One reason at one interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DropRate {
    pub(crate) stage: String,
    pub(crate) reason: String,
    pub(crate) port: String,
    /// Packets since the interface was attached.
    pub(crate) packets: u64,
    /// Packets a second.
    pub(crate) rate: Option<f64>,
}

impl PortRates {
    /// The larger share of its limits that it uses; 0 without limits.
    pub(crate) fn share(&self) -> f64 {
        shares(self.sent, self.received, &self.limits).map(|(_, share)| share).fold(0.0, f64::max)
    }
}

pub(super) fn ports(span: Option<&Span<'_>>, now: &Sample, drops: &[DropRate]) -> Vec<PortRates> {
    let earlier = span.map(|span| span.earlier.ports.iter().map(|port| (key(port), port)).collect());
    let earlier: HashMap<_, &PortReport> = earlier.unwrap_or_default();
    let mut by_host: HashMap<&str, Vec<&DropRate>> = HashMap::new();
    for drop in drops {
        by_host.entry(&drop.port).or_default().push(drop);
    }
    let of = |port: &PortReport| {
        let then = earlier.get(&key(port)).filter(|then| then.host_ifindex == port.host_ifindex);
        let span = span.zip(then);
        let drops = by_host.get(&*port.host_ifname).into_iter().flatten();
        port_rates(
            port,
            span.and_then(|(span, then)| rates(span, then.from, port.from)),
            span.and_then(|(span, then)| rates(span, then.to, port.to)),
            drops.map(|drop| (*drop).clone()).collect(),
        )
    };
    now.ports.iter().map(of).collect()
}

/// A [`DropRate`] for each reason at each interface. One that was not there before has begun at zero since.
pub(super) fn drops(span: Option<&Span<'_>>, now: &Sample) -> Vec<DropRate> {
    let key = |drop: &DropReport| (drop.port.clone(), drop.reason.clone());
    let earlier = span.map(|span| span.earlier.drops.iter().map(|drop| (key(drop), drop.packets)).collect());
    let earlier: HashMap<_, u64> = earlier.unwrap_or_default();
    let of = |drop: &DropReport| DropRate {
        stage: drop.stage.clone(),
        reason: drop.reason.clone(),
        port: drop.port.clone(),
        packets: drop.packets,
        rate: span
            .and_then(|span| span.rate(earlier.get(&key(drop)).copied().unwrap_or_default(), drop.packets)),
    };
    let mut drops: Vec<_> = now.drops.iter().map(of).collect();
    let rate = |drop: &DropRate| drop.rate.unwrap_or_default();
    drops.sort_by(|a, b| rate(b).total_cmp(&rate(a)).then(b.packets.cmp(&a.packets)));
    drops
}

fn port_rates(
    port: &PortReport,
    sent: Option<Rates>,
    received: Option<Rates>,
    drops: Vec<DropRate>,
) -> PortRates {
    let short: String = port.container.chars().take(SHORT).collect();
    let is_unnamed = port.pod.is_empty();
    let whose =
        if is_unnamed { format!("{}/{short}", port.network) } else { pod_text(&port.namespace, &port.pod) };
    PortRates {
        network: port.network.clone(),
        container: port.container.clone(),
        ifname: port.ifname.clone(),
        namespace: port.namespace.clone(),
        pod: port.pod.clone(),
        host_ifname: port.host_ifname.clone(),
        sent,
        received,
        limits: port.limits.clone(),
        throttled: throttled(sent, received, &port.limits, &drops),
        drops,
        kernels_way: port.kernels_way.clone(),
        name: escape(&format!("{whose}:{}", port.ifname)),
    }
}

fn throttled(
    sent: Option<Rates>,
    received: Option<Rates>,
    limits: &Limits,
    drops: &[DropRate],
) -> Vec<&'static str> {
    let full = shares(sent, received, limits).filter(|(_, share)| *share >= FULL).map(|(way, _)| way);
    let dropping = drops.iter().filter(|drop| drop.rate.is_some_and(|rate| rate > 0.0));
    let by_reason = dropping.filter_map(|drop| match &*drop.reason {
        "rate_exceeded" => Some("egress"),
        "storm_control" => Some("storm"),
        "connection_limit" | "opening_rate" => Some("connections"),
        _ => None,
    });
    let mut throttled: Vec<_> = full.chain(by_reason).collect();
    throttled.sort_unstable();
    throttled.dedup();
    throttled
}

/// What of each limit is used.
fn shares(
    sent: Option<Rates>,
    received: Option<Rates>,
    limits: &Limits,
) -> impl Iterator<Item = (&'static str, f64)> {
    let ways = [("egress", sent, limits.egress), ("ingress", received, limits.ingress)];
    ways.into_iter().filter_map(|(way, rates, limit)| {
        let limit = limit.filter(|limit| *limit > 0)?;
        Some((way, rates?.bits / limit as f64))
    })
}

fn key(port: &PortReport) -> [&str; 3] {
    [&port.network, &port.container, &port.ifname]
}

fn rates(span: &Span<'_>, then: Traffic, now: Traffic) -> Option<Rates> {
    Some(Rates {
        bits: span.rate(then.bytes, now.bytes)? * 8.0,
        fast: span.rate(then.fast, now.fast)?,
        kernel: span.rate(then.kernel, now.kernel)?,
        dropped: span.rate(then.dropped, now.dropped)?,
    })
}
