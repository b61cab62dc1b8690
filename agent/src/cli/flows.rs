//! `shunt-agent flows`: the connections that are asked for, of all that there are.

use std::io::{self, BufWriter, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use shunt_agent_api::{FlowEnds, FlowProtocol, FlowReport, PART, Reply, Request};
use shunt_dataplane::nat::connection::Phase;

use super::answer_text::pod_text;
use super::exit::UNREACHABLE;
use super::printing::{code_of, print_json};
use super::query::Query;
use super::table::{Align::Left, Align::Right, Table, bytes, grouped};

/// Options of `flows`; each leaves fewer of them.
#[derive(Args, Debug)]
pub(crate) struct Flows {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Args, Debug, Default)]
struct Wanted {
    /// Only this protocol: tcp, udp, sctp, icmp, icmpv6.
    #[arg(long, value_parser = PossibleValuesParser::new(FlowProtocol::ALL.map(FlowProtocol::name)),
        hide_possible_values = true)]
    proto: Option<String>,
    /// Only those with this address on either side, the client's, the node's or the container's.
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Only those with this port, or of an echo this identifier, on either side.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Only those in this state: opening, established, closing, closed, reset.
    #[arg(long, value_parser = PossibleValuesParser::new(Phase::ALL.map(Phase::name)),
        hide_possible_values = true)]
    state: Option<String>,
}

impl Flows {
    pub(super) fn ask(self) -> ExitCode {
        let Self { query, wanted } = self;
        let mut flows = match query.reply_to(Request::Flows) {
            Ok(Reply::Flows(flows)) => flows,
            Ok(_) => return UNREACHABLE.into(),
            Err(code) => return code,
        };
        flows.retain(|flow| wanted.has(flow));
        // Each part of the answer is sorted by itself.
        flows.sort_by_key(|flow| (flow.dport, flow.src, flow.sport));
        code_of(if query.json { print_json(&flows) } else { print(&flows) })
    }
}

/// A table, of which a part at a time is text.
fn print(flows: &[FlowReport]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if flows.is_empty() {
        writeln!(out, "no translated connections")?;
    }
    let mut table = Table::new([
        ("PROTOCOL", Left),
        ("FROM", Left),
        ("TO", Left),
        ("BECOMES", Left),
        ("POD", Left),
        ("STATE", Left),
        ("OPENED BY", Left),
        ("PACKETS", Right),
        ("BYTES", Right),
        ("EXPIRES", Right),
    ]);
    for part in flows.chunks(PART) {
        part.iter().for_each(|flow| table.row(cells(flow)));
        write!(out, "{table}")?;
        table.go_on();
    }
    out.flush()
}

fn cells(flow: &FlowReport) -> [String; 10] {
    let FlowEnds { src, sport, dst, dport } = flow.translated;
    let from_itself = (src, sport) == (flow.src, flow.sport);
    let by = if from_itself { String::new() } else { format!(" by {}", SocketAddr::new(src, sport)) };
    // What an echo goes to is no port.
    let to =
        |ip, port| if port == 0 { IpAddr::to_string(&ip) } else { SocketAddr::new(ip, port).to_string() };
    [
        flow.proto.to_string(),
        SocketAddr::new(flow.src, flow.sport).to_string(),
        to(flow.dst, flow.dport),
        format!("{}{by}", to(dst, dport)),
        pod_text(&flow.namespace, &flow.pod),
        flow.state.clone(),
        if flow.kernel { "kernel" } else { "programs" }.to_owned(),
        grouped(flow.packets),
        bytes(flow.bytes),
        format!("{} s", flow.expires_seconds),
    ]
}

impl Wanted {
    fn has(&self, flow: &FlowReport) -> bool {
        let to = flow.translated;
        let proto = self.proto.as_ref().is_none_or(|proto| *proto == flow.proto.to_string());
        let state = self.state.as_ref().is_none_or(|state| *state == flow.state);
        let address = self.address.is_none_or(|ip| [flow.src, flow.dst, to.src, to.dst].contains(&ip));
        let port = self.port.is_none_or(|port| [flow.sport, flow.dport, to.sport, to.dport].contains(&port));
        proto && state && address && port
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::exit::USAGE;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn each_option_leaves_out_what_it_does_not_name() {
        let ends = FlowEnds { src: ip(1), sport: 4000, dst: ip(3), dport: 80 };
        let flow = FlowReport {
            proto: FlowProtocol::Tcp,
            src: ip(1),
            sport: 4000,
            dst: ip(2),
            dport: 8080,
            translated: ends,
            state: "established".to_owned(),
            kernel: false,
            expires_seconds: 7,
            namespace: "team".to_owned(),
            pod: "web".to_owned(),
            packets: 1,
            bytes: 60,
        };
        assert!(Wanted::default().has(&flow));
        for last in [1, 2, 3] {
            assert!(Wanted { address: Some(ip(last)), ..Wanted::default() }.has(&flow));
        }
        assert!(Wanted { port: Some(80), state: Some("established".into()), ..Wanted::default() }.has(&flow));
        for other in [
            Wanted { proto: Some("udp".into()), ..Wanted::default() },
            Wanted { address: Some(ip(4)), ..Wanted::default() },
            Wanted { port: Some(443), ..Wanted::default() },
            Wanted { proto: Some("tcp".into()), state: Some("closed".into()), ..Wanted::default() },
        ] {
            assert!(!other.has(&flow), "{other:?}");
        }
    }

    #[test]
    fn every_protocol_and_state_that_is_reported_can_be_asked_for_and_no_other() {
        let parse = |option: &str, value: &str| Cli::try_parse_from(["shunt-agent", "flows", option, value]);
        for proto in FlowProtocol::ALL {
            parse("--proto", &proto.to_string()).unwrap();
        }
        for state in Phase::ALL {
            parse("--state", state.name()).unwrap();
        }
        for (option, value, meant) in [("--proto", "tpc", "tcp"), ("--state", "establshed", "established")] {
            let refused = parse(option, value).unwrap_err();
            assert_eq!(refused.exit_code(), i32::from(USAGE));
            assert!(refused.to_string().contains(meant), "{refused}");
        }
    }
}
