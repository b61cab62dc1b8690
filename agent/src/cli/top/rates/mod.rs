//! Two samples make rates.
//!
//! A rate is unknown, and not zero, where there is no earlier sample of the same port or its counters have begun anew.

mod ports;
mod span;
mod uplinks;

use serde::Serialize;

pub(super) use self::ports::{DropRate, PortRates, Rates};
use self::span::Span;
pub(super) use self::uplinks::{Direction, UplinkRates};
use super::sample::Sample;

/// What is shown of the node.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Readout {
    pub(super) version: String,
    pub(super) healthy: bool,
    /// What is wrong.
    pub(super) reasons: Vec<String>,
    /// The time between the samples; 0 of a first one.
    pub(super) seconds: f64,
    pub(super) ports: Vec<PortRates>,
    pub(super) uplinks: Vec<UplinkRates>,
    /// Reasons at interfaces, the highest rate first.
    pub(super) drops: Vec<DropRate>,
}

impl Readout {
    /// What has happened between two samples.
    pub(super) fn between(earlier: Option<&Sample>, now: &Sample) -> Self {
        let span = earlier.and_then(|earlier| Span::between(earlier, now));
        let drops = ports::drops(span.as_ref(), now);
        Self {
            version: now.status.version.clone(),
            healthy: now.status.healthy,
            reasons: now.status.reasons.clone(),
            seconds: span.as_ref().map_or(0.0, |span| span.seconds()),
            ports: ports::ports(span.as_ref(), now, &drops),
            uplinks: uplinks::uplinks(span.as_ref(), now),
            drops,
        }
    }
}

#[cfg(test)]
#[path = "rates_tests.rs"]
pub(super) mod tests;
