//! `shunt-agent explain`: the question on the command line, and the answer for people.

use std::process::ExitCode;

use clap::Args;
use shunt_agent_api::{Origin, Question, Request};

use super::query::Query;

/// What would become of a packet.
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// Where it begins: NETWORK/CONTAINER/IFNAME, uplink:NAME or host.
    #[arg(long, value_name = "ORIGIN")]
    from: Origin,
    /// Its bytes in hex from the Ethernet header on, or where it goes: "tcp 10.0.0.2:80", "udp [fd00::2]:53",
    /// "icmp 10.0.0.2", "arp 10.0.0.2".
    #[arg(long, value_name = "PACKET")]
    packet: Question,
    #[command(flatten)]
    query: Query,
}

impl Explain {
    pub(super) fn ask(self) -> ExitCode {
        self.query.ask(Request::Explain { from: self.from, packet: self.packet })
    }
}
