//! Answers as text: tables, and what has to be said beside them.

use std::net::{IpAddr, SocketAddr};

use shunt_agent::capacity::Quantity;
use shunt_agent_api::{
    CapacityReport, DropReport, Explanation, FdbEntry, FdbKind, MappingReport, PortReport,
};

use super::escape::line;
use super::table::{Align::Left, Align::Right, Table, bytes, grouped};

/// A pod as `namespace/name`.
pub(super) fn pod_text(namespace: &str, pod: &str) -> String {
    if pod.is_empty() { "-".to_owned() } else { format!("{namespace}/{pod}") }
}

pub(super) fn ports_text(ports: &[PortReport]) -> String {
    let mut table = Table::new([
        ("NETWORK", Left),
        ("CONTAINER", Left),
        ("POD", Left),
        ("IF", Left),
        ("HOST END", Left),
        ("ADDRESSES", Left),
        ("SENT", Right),
        ("FAST", Right),
        ("KERNEL", Right),
        ("DROPPED", Right),
        ("RECEIVED", Right),
        ("FAST", Right),
        ("KERNEL", Right),
        ("DROPPED", Right),
    ]);
    for port in ports {
        let ips: Vec<_> = port.ips.iter().map(ToString::to_string).collect();
        table.row([
            port.network.clone(),
            port.container.chars().take(13).collect(),
            pod_text(&port.namespace, &port.pod),
            port.ifname.clone(),
            port.host_ifname.clone(),
            ips.join(","),
            bytes(port.from.bytes),
            grouped(port.from.fast),
            grouped(port.from.kernel),
            grouped(port.from.dropped),
            bytes(port.to.bytes),
            grouped(port.to.fast),
            grouped(port.to.kernel),
            grouped(port.to.dropped),
        ]);
    }
    let reasons = ports.iter().filter(|port| !port.kernels_way.is_empty()).map(|port| {
        let PortReport { network, container, ifname, kernels_way, .. } = port;
        line(&format!("{network}/{container}/{ifname} takes the kernel's way: {}", kernels_way.join("; ")))
    });
    or_nothing(ports, "no attachments", &table) + &reasons.collect::<String>()
}

pub(super) fn fdb_text(entries: &[FdbEntry]) -> String {
    let mut table = Table::new([
        ("BRIDGE", Left),
        ("VLAN", Right),
        ("STATION", Left),
        ("PORT", Left),
        ("KIND", Left),
        ("AGE", Right),
    ]);
    for entry in entries {
        let (kind, age) = match entry.kind {
            FdbKind::Static => ("static", "-".to_owned()),
            FdbKind::Learned => ("learned", format!("{} s", entry.age_seconds)),
        };
        let vid = if entry.vid == 0 { "-".to_owned() } else { entry.vid.to_string() };
        table.row([entry.bridge.clone(), vid, entry.mac.clone(), entry.port.clone(), kind.to_owned(), age]);
    }
    or_nothing(entries, "no stations", &table)
}

pub(super) fn capacity_text(capacity: &CapacityReport) -> String {
    let mut uplinks = Table::new([
        ("UPLINK", Left),
        ("SPEED", Right),
        ("DIRECTION", Left),
        ("TOTAL", Right),
        ("RESERVED", Right),
        ("ALLOCATED", Right),
        ("FREE", Right),
    ]);
    let mut allocations =
        Table::new([("ATTACHMENT", Left), ("UPLINK", Left), ("EGRESS", Right), ("INGRESS", Right)]);
    let mut notes = String::new();
    let rate = |rate| Quantity(rate).to_string();
    for uplink in &capacity.uplinks {
        let speed = if uplink.speed == 0 { "-".to_owned() } else { rate(uplink.speed) };
        for (direction, pool) in [("egress", uplink.egress), ("ingress", uplink.ingress)] {
            let figures = [pool.total, pool.reserved, pool.allocated, pool.free].map(rate);
            let [total, reserved, allocated, free] = figures;
            let name = uplink.name.clone();
            uplinks.row([name, speed.clone(), direction.to_owned(), total, reserved, allocated, free]);
        }
        for one in &uplink.allocations {
            let key = format!("{}/{}/{}", one.network, one.container, one.ifname);
            allocations.row([key, uplink.name.clone(), rate(one.egress), rate(one.ingress)]);
        }
        if let Some(unknown) = &uplink.unknown {
            notes.push_str(&line(&format!("{}: {unknown}", uplink.name)));
        }
    }
    let allocated = capacity.uplinks.iter().any(|uplink| !uplink.allocations.is_empty());
    let slots = capacity.uplinks.first().map(|uplink| uplink.slots).unwrap_or_default();
    let room = format!("room for {} of {} attachments\n", slots.free, slots.total);
    let text = format!("{uplinks}{notes}{room}");
    let text = if allocated { format!("{text}\n{allocations}") } else { text };
    if capacity.uplinks.is_empty() { "no uplinks\n".to_owned() } else { text }
}

pub(super) fn drops_text(drops: &[DropReport]) -> String {
    let mut table =
        Table::new([("STAGE", Left), ("REASON", Left), ("PORT", Left), ("PACKETS", Right), ("BYTES", Right)]);
    for drop in drops {
        let (stage, reason) = (drop.stage.clone(), drop.reason.clone());
        table.row([stage, reason, drop.port.clone(), grouped(drop.packets), bytes(drop.bytes)]);
    }
    or_nothing(drops, "nothing dropped", &table)
}

pub(super) fn mappings_text(mappings: &[MappingReport]) -> String {
    let mut table = Table::new([
        ("HOST PORT", Left),
        ("CONTAINER", Left),
        ("LEADS TO", Left),
        ("OPENED BY", Left),
        ("CONNECTIONS", Right),
        ("RECEIVED", Right),
        ("PACKETS", Right),
        ("SENT", Right),
        ("PACKETS", Right),
    ]);
    for mapping in mappings {
        let host = mapping.host_ip.map_or_else(
            || mapping.host_port.to_string(),
            |ip| SocketAddr::new(ip, mapping.host_port).to_string(),
        );
        let to = |ip: &IpAddr| SocketAddr::new(*ip, mapping.container_port).to_string();
        table.row([
            format!("{host}/{}", mapping.proto),
            format!("{}/{}/{}", mapping.network, mapping.container, mapping.ifname),
            mapping.container_ips.iter().map(to).collect::<Vec<_>>().join(","),
            if mapping.kernel { "kernel" } else { "programs" }.to_owned(),
            grouped(mapping.connections),
            bytes(mapping.to.bytes),
            grouped(mapping.to.packets),
            bytes(mapping.from.bytes),
            grouped(mapping.from.packets),
        ]);
    }
    or_nothing(mappings, "no host ports", &table)
}

fn or_nothing<T, const N: usize>(rows: &[T], nothing: &str, table: &Table<N>) -> String {
    if rows.is_empty() { format!("{nothing}\n") } else { table.to_string() }
}

pub(super) fn explanation_text(explanation: &Explanation) -> String {
    let mut table =
        Table::new([("PROGRAM", Left), ("ON", Left), ("STAGE", Left), ("SAYS", Left), ("WHY", Left)]);
    for stage in &explanation.stages {
        let cells = [&stage.program, &stage.ifname, &stage.stage, &stage.decision, &stage.detail];
        table.row(cells.map(String::clone));
    }
    let Explanation { verdict, reason, to, .. } = explanation;
    let why = if reason.is_empty() { to.join(", ") } else { reason.clone() };
    format!("{table}\n{}", line(&format!("{verdict}: {why}")))
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::{Limits, Traffic, VlanReport};

    use super::*;

    /// What would clear the screen, and make a line of its own.
    const HOSTILE: &str = "web\u{1b}[2J\n\u{9b}1mforged";

    fn hostile() -> String {
        HOSTILE.to_owned()
    }

    #[test]
    fn names_of_pods_interfaces_and_containers_are_shown_in_their_row_and_not_obeyed() {
        let port = PortReport {
            network: hostile(),
            container: hostile(),
            ifname: hostile(),
            host_ifname: hostile(),
            host_ifindex: 7,
            mac: String::new(),
            ips: Vec::new(),
            vlan: VlanReport::default(),
            restrictions: Vec::new(),
            limits: Limits::default(),
            kernels_way: vec![hostile()],
            namespace: hostile(),
            pod: hostile(),
            pod_uid: String::new(),
            from: Traffic::default(),
            to: Traffic::default(),
        };
        let drop = DropReport {
            stage: "find".to_owned(),
            reason: "hairpin".to_owned(),
            port: hostile(),
            packets: 1,
            bytes: 60,
        };
        let explanation = Explanation {
            verdict: "pass".to_owned(),
            reason: hostile(),
            to: Vec::new(),
            stages: Vec::new(),
            packet: String::new(),
        };
        for (text, lines) in
            [(ports_text(&[port]), 3), (drops_text(&[drop]), 2), (explanation_text(&explanation), 3)]
        {
            assert_eq!(text.lines().count(), lines, "{text:?}");
            assert!(
                text.contains("\\u{1b}[2J\\n") && text.chars().all(|c| c == '\n' || !c.is_control()),
                "{text:?}"
            );
        }
    }
}
