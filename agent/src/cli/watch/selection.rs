//! Which packets are asked for, and for how long.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use shunt_agent_api::PacketReport;

use super::addresses::addresses;

/// Options that leave fewer packets.
#[derive(Args, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Selection {
    /// Only packets from or to this host end, or the container with this id; may be repeated.
    #[arg(long, value_name = "IFNAME|CONTAINER")]
    port: Vec<String>,
    /// Only packets from or to this pod; may be repeated.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = pod)]
    pod: Vec<String>,
    /// Only packets that were dropped or passed for this reason; may be repeated.
    #[arg(long, value_name = "REASON")]
    reason: Vec<String>,
    /// Only packets with this address, of IP or in ARP, on either side.
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// End after this time, as 500ms or 10s.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// End after this many packets.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    /// At most so many packets a second, of each reason and CPU [default: 100 of drops, 10000 for a capture].
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
}

impl Selection {
    pub(super) fn time(&self) -> Option<Duration> {
        self.time
    }

    pub(super) fn count(&self) -> Option<u64> {
        self.count
    }

    pub(in crate::cli) fn rate_or(&self, rate: u32) -> u32 {
        self.rate.unwrap_or(rate)
    }

    /// The words by which the agent finds the ports.
    pub(in crate::cli) fn ports(&self) -> Vec<String> {
        self.port.iter().chain(&self.pod).cloned().collect()
    }

    /// Whether a packet is wanted that the agent has told.
    pub(super) fn has(&self, packet: &PacketReport, bytes: &[u8]) -> bool {
        let reason = self.reason.is_empty() || self.reason.contains(&packet.reason);
        reason && self.address.is_none_or(|ip| addresses(bytes, packet.bare).contains(&ip))
    }
}

fn pod(word: &str) -> Result<String, String> {
    match word.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(word.to_owned()),
        _ => Err("a pod is NAMESPACE/NAME".to_owned()),
    }
}
