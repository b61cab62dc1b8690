//! What is measured between two ends.

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use shunt_lab::Path;
use shunt_lab::load::{Bound, Placement, Sample, tcp_crr, tcp_rr, udp_burst};

/// A load generator and the figure of it that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Workload {
    /// Request and response on one TCP connection
    Rr,
    /// Connect, request, response, close
    Crr,
    /// 18-byte datagrams
    Udp,
}

impl Workload {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Self; 3] = [Self::Rr, Self::Crr, Self::Udp];

    /// Its heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Rr => "TCP round trip",
            Self::Crr => "TCP connection",
            Self::Udp => "UDP packets",
        }
    }

    /// The unit of [`Workload::figure`].
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Rr | Self::Crr => "µs",
            Self::Udp => "kpps",
        }
    }

    /// Whether less is better.
    pub(crate) fn is_latency(self) -> bool {
        self != Self::Udp
    }

    /// The figure that is compared: median latency, or rate.
    pub(crate) fn figure(self, sample: &Sample) -> f64 {
        match self {
            Self::Rr | Self::Crr => sample.p50_us.unwrap_or(f64::NAN),
            Self::Udp => sample.per_second() / 1000.0,
        }
    }

    /// Measures once.
    pub(crate) fn measure(self, path: Path<'_>, at: Placement, bound: Bound) -> Result<Sample> {
        match self {
            Self::Rr => tcp_rr(path, at, bound),
            Self::Crr => tcp_crr(path, at, bound),
            Self::Udp => udp_burst(path, at.client, bound),
        }
    }
}
