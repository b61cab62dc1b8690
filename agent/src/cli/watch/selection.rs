//! Which packets are asked for, and for how long.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use shunt_agent_api::{PacketReport, WatchRequest};
use shunt_dataplane::{DropReason, PassReason};

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
    #[arg(long, value_name = "REASON", value_parser = PossibleValuesParser::new(reasons()),
        hide_possible_values = true)]
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

    /// What is wrong with a reason that none of the packets that are asked for can have.
    pub(super) fn contradiction(&self, request: &WatchRequest) -> Option<String> {
        let comes =
            |reason: &str| request.dropped && is_of_drops(reason) || request.passed && is_of_passes(reason);
        let reason = self.reason.iter().find(|reason| !comes(reason))?;
        let (what, fate) = match is_of_passes(reason) {
            true => ("left to the kernel", "passed"),
            false => ("dropped", "dropped"),
        };
        Some(format!("{reason} is why packets are {what}: `capture --fate {fate}` has them"))
    }

    /// Whether a packet is wanted that the agent has told.
    pub(super) fn has(&self, packet: &PacketReport, bytes: &[u8]) -> bool {
        let reason = self.reason.is_empty() || self.reason.contains(&packet.reason);
        reason && self.address.is_none_or(|ip| addresses(bytes, packet.bare).contains(&ip))
    }
}

/// The name of every reason, once.
fn reasons() -> BTreeSet<&'static str> {
    let drops = DropReason::ALL.iter().map(|reason| reason.name());
    drops.chain(PassReason::ALL.iter().map(|reason| reason.name())).collect()
}

fn is_of_drops(name: &str) -> bool {
    DropReason::ALL.iter().any(|reason| reason.name() == name)
}

fn is_of_passes(name: &str) -> bool {
    PassReason::ALL.iter().any(|reason| reason.name() == name)
}

fn pod(word: &str) -> Result<String, String> {
    match word.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(word.to_owned()),
        _ => Err("a pod is NAMESPACE/NAME".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::exit::USAGE;

    #[test]
    fn a_misspelt_reason_is_refused_with_the_one_that_is_meant() {
        let parse =
            |reason: &str| Cli::try_parse_from(["shunt-agent", "drops", "--watch", "--reason", reason]);
        parse("source_spoofed").unwrap();
        let refused = parse("source_spofed").unwrap_err();
        assert_eq!(refused.exit_code(), i32::from(USAGE));
        let said = refused.to_string();
        assert!(said.contains("a similar value exists: 'source_spoofed'"), "{said}");
    }

    #[test]
    fn a_reason_of_packets_that_are_not_asked_for_is_refused_and_one_of_both_kinds_is_not() {
        let request =
            |dropped, passed| WatchRequest { dropped, passed, delivered: true, ..WatchRequest::default() };
        let why = |reason: &str, request: &WatchRequest| {
            Selection { reason: vec![reason.to_owned()], ..Selection::default() }.contradiction(request)
        };
        assert_eq!(Selection::default().contradiction(&request(true, false)), None);
        for (reason, dropped, passed) in [
            ("source_spoofed", true, false),
            ("to_host", false, true),
            ("connection_limit", true, false),
            ("connection_limit", false, true),
        ] {
            assert_eq!(why(reason, &request(dropped, passed)), None, "{reason}");
        }
        let passed = why("to_host", &request(true, false)).unwrap();
        assert!(passed.contains("to_host") && passed.contains("--fate passed"), "{passed}");
        let dropped = why("source_spoofed", &request(false, true)).unwrap();
        assert!(dropped.contains("--fate dropped"), "{dropped}");
        assert!(why("no_port", &request(false, false)).is_some(), "what is delivered has no reason");
    }
}
