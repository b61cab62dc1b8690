//! A port, an uplink and a drop as rows of short texts, for the screen and for scripts alike.

use super::escape::escape;
use super::rates::{Direction, DropRate, PortRates, Rates, UplinkRates};
use super::units::{known, scaled};
use crate::cli::table::Align::{self, Left, Right};
use crate::cli::table::grouped;

/// The columns of ports.
pub(super) const PORT_HEADS: [(&str, Align); 10] = [
    ("NAME", Left),
    ("SENT b/s", Right),
    ("FAST/s", Right),
    ("KERN/s", Right),
    ("RCVD b/s", Right),
    ("FAST/s", Right),
    ("KERN/s", Right),
    ("DROP/s", Right),
    ("LIMITS", Left),
    ("NOTES", Left),
];

/// The columns of uplinks, in bits a second.
pub(super) const UPLINK_HEADS: [(&str, Align); 6] = [
    ("UPLINK", Left),
    ("DIRECTION", Left),
    ("TOTAL", Right),
    ("ALLOCATED", Right),
    ("CLAIMED", Right),
    ("USED", Right),
];

/// The columns of drops.
pub(super) const DROP_HEADS: [(&str, Align); 5] =
    [("DROPPED", Left), ("STAGE", Left), ("PORT", Left), ("PACKETS/s", Right), ("PACKETS", Right)];

pub(super) fn port_cells(port: &PortRates) -> [String; 10] {
    let figure = |rates: Option<Rates>, of: fn(Rates) -> f64| known(rates.map(of));
    let dropped = port.sent.zip(port.received).map(|(sent, received)| sent.dropped + received.dropped);
    [
        port.name.clone(),
        figure(port.sent, |rates| rates.bits),
        figure(port.sent, |rates| rates.fast),
        figure(port.sent, |rates| rates.kernel),
        figure(port.received, |rates| rates.bits),
        figure(port.received, |rates| rates.fast),
        figure(port.received, |rates| rates.kernel),
        known(dropped),
        limits(port),
        notes(port),
    ]
}

/// The limits from and to the container.
fn limits(port: &PortRates) -> String {
    let limit = |limit: Option<u64>| known(limit.map(|limit| limit as f64));
    match (port.limits.egress, port.limits.ingress) {
        (None, None) => String::new(),
        (egress, ingress) => format!("{}/{}", limit(egress), limit(ingress)),
    }
}

fn notes(port: &PortRates) -> String {
    let mut notes = Vec::new();
    if !port.throttled.is_empty() {
        notes.push(format!("throttled: {}", port.throttled.join(", ")));
    }
    let dropping = port.drops.iter().filter_map(|drop| {
        let rate = drop.rate.filter(|rate| *rate > 0.0)?;
        Some(format!("{} {}/s", escape(&drop.reason), scaled(rate)))
    });
    let dropping: Vec<_> = dropping.collect();
    if !dropping.is_empty() {
        notes.push(format!("dropped: {}", dropping.join(", ")));
    }
    if !port.kernels_way.is_empty() {
        notes.push(format!("by the kernel: {}", escape(&port.kernels_way.join(", "))));
    }
    notes.join("; ")
}

pub(super) fn uplink_cells(uplink: &UplinkRates) -> [[String; 6]; 2] {
    let UplinkRates { name, egress, ingress } = uplink;
    [("egress", egress), ("ingress", ingress)].map(|(way, direction)| {
        let Direction { total, allocated, claimed, used } = *direction;
        let rate = |rate: u64| scaled(rate as f64);
        let total = known(total.map(|total| total as f64));
        [escape(name), way.to_owned(), total, rate(allocated), rate(claimed), known(used)]
    })
}

pub(super) fn drop_cells(drop: &DropRate) -> [String; 5] {
    let DropRate { stage, reason, port, packets, rate } = drop;
    [escape(reason), escape(stage), escape(port), known(*rate), grouped(*packets)]
}
