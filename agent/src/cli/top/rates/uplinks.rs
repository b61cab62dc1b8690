//! Rates of uplinks beside what of them has been handed out.

use serde::Serialize;
use shunt_agent_api::{CarriedReport, PoolReport, UplinkReport};

use super::span::Span;
use crate::cli::top::sample::Sample;

/// One declared uplink.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct UplinkRates {
    pub(crate) name: String,
    pub(crate) egress: Direction,
    pub(crate) ingress: Direction,
}

/// One direction of an uplink, in bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Direction {
    /// What can be handed out; none where it is not known.
    pub(crate) total: Option<u64>,
    /// What attachments have as limits.
    pub(crate) allocated: u64,
    /// What of that claims (dynamic resource allocation) have.
    pub(crate) claimed: u64,
    /// What the interface carries.
    pub(crate) used: Option<f64>,
}

pub(super) fn uplinks(span: Option<&Span<'_>>, now: &Sample) -> Vec<UplinkRates> {
    let of = |uplink: &UplinkReport| {
        let then = span.and_then(|span| {
            let mut uplinks = span.earlier.capacity.uplinks.iter();
            Some((span, uplinks.find(|then| then.name == uplink.name)?.carried?))
        });
        let used = |bytes: fn(CarriedReport) -> u64| {
            let ((span, then), now) = then.zip(uplink.carried)?;
            Some(span.rate(bytes(then), bytes(now))? * 8.0)
        };
        let claims = || uplink.allocations.iter().filter(|one| one.claimed);
        let direction = |pool: PoolReport, claimed, used| Direction {
            total: uplink.unknown.is_none().then_some(pool.total),
            allocated: pool.allocated,
            claimed,
            used,
        };
        UplinkRates {
            name: uplink.name.clone(),
            egress: direction(
                uplink.egress,
                claims().map(|one| one.egress).sum(),
                used(|bytes| bytes.egress),
            ),
            ingress: direction(
                uplink.ingress,
                claims().map(|one| one.ingress).sum(),
                used(|bytes| bytes.ingress),
            ),
        }
    };
    now.capacity.uplinks.iter().map(of).collect()
}
