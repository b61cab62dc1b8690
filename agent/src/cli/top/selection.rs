//! Which ports are shown, and in which order.

use std::cmp::Ordering;

use clap::ValueEnum;

use super::rates::{PortRates, Rates};

/// What ports are sorted by; figures begin with the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Key {
    /// Bits a second, both ways
    #[default]
    Traffic,
    /// Bits a second that the container sends
    Sent,
    /// Bits a second that the container is sent
    Received,
    /// Packets a second by the fast path
    Fast,
    /// Packets a second by the kernel
    Kernel,
    /// Packets a second that are dropped
    Dropped,
    /// The share of its limit that a container uses
    Limit,
    /// The name
    Name,
}

/// Which ports, and in which order.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) key: Key,
    pub(super) is_reversed: bool,
    /// Only ports of which a name or an address has this text, in any case.
    pub(super) filter: String,
    pub(super) throttled_only: bool,
}

impl Key {
    /// The one that is `steps` further on, around the end.
    pub(super) fn step(self, steps: isize) -> Self {
        let all = Self::value_variants();
        let at = all.iter().position(|key| *key == self).unwrap_or_default();
        let next = (at.cast_signed() + steps).rem_euclid(all.len().cast_signed());
        all[next.unsigned_abs()]
    }

    /// As it is written.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// A port's figure.
    fn figure(self, port: &PortRates) -> f64 {
        let both = |figure: fn(Rates) -> f64| {
            [port.sent, port.received].into_iter().flatten().map(figure).sum::<f64>()
        };
        match self {
            Self::Name => 0.0,
            Self::Traffic => both(|rates| rates.bits),
            Self::Sent => port.sent.unwrap_or_default().bits,
            Self::Received => port.received.unwrap_or_default().bits,
            Self::Fast => both(|rates| rates.fast),
            Self::Kernel => both(|rates| rates.kernel),
            Self::Dropped => both(|rates| rates.dropped),
            Self::Limit => port.share(),
        }
    }
}

impl Selection {
    /// The ports that are shown, in their order.
    pub(super) fn of<'a>(&self, ports: &'a [PortRates]) -> Vec<&'a PortRates> {
        let filter = self.filter.to_lowercase();
        let is_shown = |port: &&PortRates| {
            (filter.is_empty() || has(port, &filter)) && !(self.throttled_only && port.throttled.is_empty())
        };
        let shown = ports.iter().filter(is_shown);
        let mut shown: Vec<_> = shown.map(|port| (self.key.figure(port), port)).collect();
        shown.sort_by(|(a, one), (b, other)| {
            let order = b.total_cmp(a).then_with(|| by_name(one, other));
            if self.is_reversed { order.reverse() } else { order }
        });
        shown.into_iter().map(|(_, port)| port).collect()
    }
}

fn by_name(one: &PortRates, other: &PortRates) -> Ordering {
    one.name.cmp(&other.name).then_with(|| one.container.cmp(&other.container))
}

fn has(port: &PortRates, filter: &str) -> bool {
    let PortRates { name, network, container, host_ifname, .. } = port;
    let reasons = port.drops.iter().map(|drop| &drop.reason);
    let texts = [name, network, container, host_ifname].into_iter().chain(reasons);
    texts.into_iter().any(|text| text.to_lowercase().contains(filter))
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
