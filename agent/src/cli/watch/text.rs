//! A packet as a line.

use std::time::{Duration, UNIX_EPOCH};

use etherparse::{LaxNetSlice, LinkSlice};
use shunt_agent_api::PacketReport;

use super::addresses::{ends, ports, sliced};
use super::stream::Losses;
use crate::cli::escape;

/// Time, reason and stage, port, program, length, and what the packet is, with a newline.
pub(in crate::cli) fn line(packet: &PacketReport, bytes: &[u8]) -> String {
    let time = humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_nanos(packet.time));
    let PacketReport { stage, length, .. } = packet;
    let why = if packet.reason.is_empty() { &packet.verdict } else { &packet.reason };
    let stage = if stage.is_empty() { String::new() } else { format!(" ({stage})") };
    let program = &packet.program;
    let (place, summary) = (place(packet), summary(packet, bytes));
    escape::line(&format!("{time} {why}{stage} {place} {program} {length} bytes: {summary}"))
}

/// The interface, and whose it is.
pub(super) fn place(packet: &PacketReport) -> String {
    let PacketReport { ifname, namespace, pod, container, network, .. } = packet;
    match (pod.is_empty(), container.is_empty()) {
        (false, _) => format!("{ifname} [{namespace}/{pod}]"),
        (true, false) => format!("{ifname} [{network}/{container}]"),
        (true, true) => ifname.clone(),
    }
}

/// What was not told.
pub(in crate::cli) fn losses(Losses { left_out, lost }: Losses) -> String {
    format!("{left_out} packets were over the rate and left out, {lost} were lost for want of room")
}

/// Addresses, ports and protocol, as far as the bytes say.
fn summary(packet: &PacketReport, bytes: &[u8]) -> String {
    let Some(sliced) = sliced(bytes, packet.bare) else { return "unreadable".to_owned() };
    let Some([source, destination]) = ends(&sliced) else { return link(bytes, &sliced.link) };
    let (from, to) = match ports(&sliced) {
        Some([from, to]) => (format!(" port {from}"), format!(" port {to}")),
        None => (String::new(), String::new()),
    };
    let protocol = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => ip.payload().ip_number.keyword_str().unwrap_or("IPv4"),
        Some(LaxNetSlice::Ipv6(ip)) => ip.payload().ip_number.keyword_str().unwrap_or("IPv6"),
        _ => "ARP",
    };
    format!("{protocol} {source}{from} > {destination}{to}")
}

fn link(bytes: &[u8], link: &Option<LinkSlice<'_>>) -> String {
    let Some(LinkSlice::Ethernet2(ethernet)) = link else { return format!("{} bytes", bytes.len()) };
    let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    let (source, destination) = (mac(ethernet.source()), mac(ethernet.destination()));
    format!("{source} > {destination} type {:#06x}", ethernet.ether_type().0)
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    fn frame() -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(4000, 53);
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &[7; 40]).unwrap();
        bytes
    }

    #[test]
    fn a_line_says_what_where_and_why_however_few_bytes_were_copied() {
        let packet = PacketReport {
            ifname: "veth1".into(),
            namespace: "team".into(),
            pod: "web".into(),
            program: "from_container".into(),
            verdict: "drop".into(),
            stage: "mac filter".into(),
            reason: "source_spoofed".into(),
            length: 82,
            ..PacketReport::default()
        };
        let said = line(&packet, &frame());
        assert_eq!(
            said,
            "1970-01-01T00:00:00.000000Z source_spoofed (mac filter) veth1 [team/web] from_container \
             82 bytes: UDP 10.0.0.1 port 4000 > 10.0.0.2 port 53\n"
        );
        for most in 0..frame().len() {
            line(&packet, &frame()[..most]);
        }
        assert!(line(&packet, &frame()[..34]).ends_with("UDP 10.0.0.1 > 10.0.0.2\n"));
    }

    #[test]
    fn a_pods_name_neither_ends_the_line_nor_speaks_to_the_terminal() {
        let [ifname, namespace, pod] =
            ["ve\u{1b}th", "te\u{9b}am", "web\u{1b}[2J\nforged"].map(str::to_owned);
        let said = line(&PacketReport { ifname, namespace, pod, ..PacketReport::default() }, &frame());
        assert!(said.contains("ve\\u{1b}th [te\\u{9b}am/web\\u{1b}[2J\\nforged]"), "{said:?}");
        assert!(said.lines().count() == 1 && said.trim_end().chars().all(|c| !c.is_control()), "{said:?}");
    }
}
