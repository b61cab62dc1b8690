//! What is measured between two ends.

use anyhow::Result;
use shunt_lab::Path;
use shunt_lab::load::{
    Bound, Placement, Sample, tcp_crr, tcp_rr, tcp_stream, tcp_stream_back, udp_burst, udp_rr,
};

use crate::comparison::{Better, Comparison, Row};

/// A load generator and the figure of it that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Request and response on one TCP connection.
    Rr,
    /// The same with the ends on two CPUs.
    RrTwoCpus,
    /// Connect, request, response, close.
    Crr,
    /// A datagram and its answer.
    UdpRr,
    /// 18-byte datagrams.
    Udp,
    /// As much as goes over this many TCP connections.
    Stream(u32),
    /// As much as the server sends over one.
    StreamBack,
}

impl Workload {
    /// What the file calls it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Rr => "rr".to_owned(),
            Self::RrTwoCpus => "rr-two-cpus".to_owned(),
            Self::Crr => "crr".to_owned(),
            Self::UdpRr => "udp-rr".to_owned(),
            Self::Udp => "udp".to_owned(),
            Self::Stream(flows) => format!("stream-{flows}"),
            Self::StreamBack => "stream-back".to_owned(),
        }
    }

    /// Its heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Rr => "TCP round trip",
            Self::RrTwoCpus => "TCP round trip, two CPUs",
            Self::Crr => "TCP connection",
            Self::UdpRr => "UDP round trip",
            Self::Udp => "UDP packets",
            Self::Stream(1) => "TCP stream",
            Self::Stream(_) => "TCP streams, 8 flows",
            Self::StreamBack => "TCP stream of the server",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Rr | Self::RrTwoCpus | Self::UdpRr | Self::Crr => "µs",
            Self::Udp => "kpps",
            Self::Stream(_) | Self::StreamBack => "Gbit/s",
        }
    }

    /// Whether less is better.
    pub(crate) fn is_latency(self) -> bool {
        matches!(self, Self::Rr | Self::RrTwoCpus | Self::UdpRr | Self::Crr)
    }

    /// Where its ends run. The first CPU has the machine's interrupts, so one end alone has the last.
    pub(crate) fn placement(self, cpus: &[usize]) -> Placement {
        let last = cpus.last().copied().unwrap_or(0);
        match self {
            Self::Rr | Self::UdpRr | Self::Crr | Self::Udp => Placement::one(last),
            Self::RrTwoCpus | Self::Stream(_) | Self::StreamBack => {
                Placement { client: cpus.first().copied().unwrap_or(last), server: last }
            }
        }
    }

    /// A comparison without figures. The contestants are its rows.
    pub(crate) fn comparison(self, at: Placement, rows: Vec<Row>) -> Comparison {
        let ends = if self == Self::Udp {
            format!("all of CPU {}: the inverse is the CPU time of a packet", at.client)
        } else if at.client == at.server {
            format!("both ends on CPU {}", at.client)
        } else {
            format!("ends on CPUs {} and {}", at.client, at.server)
        };
        Comparison {
            name: self.name(),
            title: self.title().to_owned(),
            unit: self.unit().to_owned(),
            better: if self.is_latency() { Better::Less } else { Better::More },
            setting: ends,
            rows,
        }
    }

    /// Measures once.
    pub(crate) fn measure(self, path: Path<'_>, at: Placement, bound: Bound) -> Result<Sample> {
        match self {
            Self::Rr | Self::RrTwoCpus => tcp_rr(path, at, bound),
            Self::UdpRr => udp_rr(path, at, bound),
            Self::Crr => tcp_crr(path, at, bound),
            Self::Udp => udp_burst(path, at.client, bound),
            Self::Stream(flows) => tcp_stream(path, at, flows, bound.time),
            Self::StreamBack => tcp_stream_back(path, at, bound.time),
        }
    }

    /// The figure that is compared: median latency, or rate.
    pub(crate) fn figure(self, sample: &Sample) -> f64 {
        match self {
            Self::Rr | Self::RrTwoCpus | Self::UdpRr | Self::Crr => sample.p50_us.unwrap_or(f64::NAN),
            Self::Udp => sample.per_second() / 1e3,
            // Operations are bytes.
            Self::Stream(_) | Self::StreamBack => sample.per_second() * 8.0 / 1e9,
        }
    }
}
