//! Verbs that ask a running agent and print its answer.

use std::io::{self, BufWriter, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use serde::Serialize;
use shunt_agent::capacity::Quantity;
use shunt_agent_api::{
    AgentStatus, BridgeUplinkReport, CapacityReport, Client, ClientError, DropReport, FdbEntry, FdbKind,
    GracePeriodReport, MappingReport, PortReport, Reply, Request, VlanGatewayReport, socket_path,
};

use super::explain::explanation_text;
use super::table::{Align::Left, Align::Right, Table, bytes, grouped};
use super::{Query, UNREACHABLE};

impl Query {
    /// Asks, and prints the answer: 0 answered, 1 not.
    pub(super) fn ask(self, request: Request) -> ExitCode {
        match self.reply_to(request) {
            Ok(reply) => code_of(self.print(&reply)),
            Err(code) => code,
        }
    }

    /// What the agent answers; else the exit code, once it is said why there is no answer.
    pub(super) fn reply_to(&self, request: Request) -> Result<Reply, ExitCode> {
        let socket = socket_path(self.socket.as_deref());
        let asked = Client::connect(&socket).and_then(|mut client| client.ask(request));
        asked.map_err(|error| complain(&error))
    }

    fn print(&self, reply: &Reply) -> io::Result<()> {
        match reply {
            Reply::Status(status) => self.show(status, status_text),
            Reply::Ports(ports) => self.show(ports, |ports| ports_text(ports)),
            Reply::Fdb(entries) => self.show(entries, |entries| fdb_text(entries)),
            Reply::Mappings(mappings) => self.show(mappings, |mappings| mappings_text(mappings)),
            Reply::Drops(drops) => self.show(drops, |drops| drops_text(drops)),
            Reply::Capacity(capacity) => self.show(capacity, capacity_text),
            Reply::Explained(explanation) => self.show(explanation, explanation_text),
            other => self.show(other, |other| format!("{other:?}\n")),
        }
    }

    fn show<T: Serialize>(&self, answer: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        if self.json { print_json(answer) } else { io::stdout().lock().write_all(text(answer).as_bytes()) }
    }
}

pub(super) fn print_json<T: Serialize>(answer: &T) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, answer)?;
    writeln!(out)?;
    out.flush()
}

/// The exit code of what was printed. A reader that has heard enough (`| head`) is no failure.
pub(super) fn code_of(printed: io::Result<()>) -> ExitCode {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => UNREACHABLE.into(),
        _ => ExitCode::SUCCESS,
    }
}

pub(super) fn complain(error: &ClientError) -> ExitCode {
    // Nothing is left to be said if standard error is closed.
    let _closed = writeln!(io::stderr(), "{error}");
    UNREACHABLE.into()
}

fn status_text(status: &AgentStatus) -> String {
    let health = if status.healthy { "healthy" } else { "NOT HEALTHY" };
    let mut text = format!(
        "shunt-agent {} (map ABI {}): {health}, {} attachments, {} repairs\n",
        status.version, status.abi, status.attachments, status.repairs
    );
    for reason in &status.reasons {
        text.push_str(&format!("  reason: {reason}\n"));
    }
    for warning in &status.warnings {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    if let Some(GracePeriodReport { mode, expedited, reason }) = &status.grace_periods {
        let length = if *expedited { "expedited around each attach and detach" } else { "normal" };
        text.push_str(&format!("  grace periods: {length} ({mode}: {reason})\n"));
    }
    if !status.uplinks.is_empty() {
        text.push_str(&format!("  uplinks: {}\n", status.uplinks.join(", ")));
    }
    if !status.bridge_uplinks.is_empty() {
        text.push_str(&format!("\n{}", bridge_uplinks_table(&status.bridge_uplinks)));
    }
    if !status.vlan_gateways.is_empty() {
        text.push_str(&format!("\n{}", vlan_gateways_table(&status.vlan_gateways)));
    }
    for moved in &status.relocations {
        let (has, addresses) =
            (if moved.complete { "has" } else { "is getting" }, moved.addresses.join(", "));
        text.push_str(&format!("  {} {has} the addresses of {}: {addresses}\n", moved.bridge, moved.uplink));
    }
    if !status.programs.is_empty() {
        let mut table = Table::new([("PROGRAM", Left), ("INTERFACE", Left), ("MODE", Left), ("ID", Right)]);
        for program in &status.programs {
            let mode = format!("{:?}", program.mode).to_lowercase();
            table.row([program.name.clone(), program.ifname.clone(), mode, program.id.to_string()]);
        }
        text.push_str(&format!("\n{table}"));
    }
    text
}

fn bridge_uplinks_table(uplinks: &[BridgeUplinkReport]) -> Table<11> {
    let mut table = Table::new([
        ("BRIDGE UPLINK", Left),
        ("OF", Left),
        ("STATE", Left),
        ("STATIONS", Right),
        ("CAME IN", Right),
        ("FAST", Right),
        ("KERNEL", Right),
        ("DROPPED", Right),
        ("WENT OUT", Right),
        ("FAST", Right),
        ("KERNEL", Right),
    ]);
    for uplink in uplinks {
        table.row([
            uplink.name.clone(),
            uplink.bridge.clone(),
            if uplink.blocked { "blocked" } else { "forwards" }.to_owned(),
            grouped(uplink.stations),
            bytes(uplink.from.bytes),
            grouped(uplink.from.fast),
            grouped(uplink.from.kernel),
            grouped(uplink.from.dropped),
            bytes(uplink.to.bytes),
            grouped(uplink.to.fast),
            grouped(uplink.to.kernel),
        ]);
    }
    table
}

fn vlan_gateways_table(gateways: &[VlanGatewayReport]) -> Table<7> {
    let mut table = Table::new([
        ("VLAN GATEWAY", Left),
        ("OF", Left),
        ("VLAN", Right),
        ("MAC", Left),
        ("ADDRESSES", Left),
        ("SENT", Right),
        ("RECEIVED", Right),
    ]);
    for gateway in gateways {
        table.row([
            gateway.name.clone(),
            gateway.bridge.clone(),
            gateway.vlan.to_string(),
            gateway.mac.clone(),
            gateway.addresses.join(","),
            bytes(gateway.from.bytes),
            bytes(gateway.to.bytes),
        ]);
    }
    table
}

fn ports_text(ports: &[PortReport]) -> String {
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
        format!("{network}/{container}/{ifname} takes the kernel's way: {}\n", kernels_way.join("; "))
    });
    or_nothing(ports, "no attachments", &table) + &reasons.collect::<String>()
}

/// A pod as `namespace/name`.
pub(super) fn pod_text(namespace: &str, pod: &str) -> String {
    if pod.is_empty() { "-".to_owned() } else { format!("{namespace}/{pod}") }
}

fn fdb_text(entries: &[FdbEntry]) -> String {
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

fn capacity_text(capacity: &CapacityReport) -> String {
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
            notes.push_str(&format!("{}: {unknown}\n", uplink.name));
        }
    }
    let allocated = capacity.uplinks.iter().any(|uplink| !uplink.allocations.is_empty());
    let slots = capacity.uplinks.first().map(|uplink| uplink.slots).unwrap_or_default();
    let room = format!("room for {} of {} attachments\n", slots.free, slots.total);
    let text = format!("{uplinks}{notes}{room}");
    let text = if allocated { format!("{text}\n{allocations}") } else { text };
    if capacity.uplinks.is_empty() { "no uplinks\n".to_owned() } else { text }
}

fn drops_text(drops: &[DropReport]) -> String {
    let mut table =
        Table::new([("STAGE", Left), ("REASON", Left), ("PORT", Left), ("PACKETS", Right), ("BYTES", Right)]);
    for drop in drops {
        let (stage, reason) = (drop.stage.clone(), drop.reason.clone());
        table.row([stage, reason, drop.port.clone(), grouped(drop.packets), bytes(drop.bytes)]);
    }
    or_nothing(drops, "nothing dropped", &table)
}

fn mappings_text(mappings: &[MappingReport]) -> String {
    let mut table = Table::new([
        ("HOST PORT", Left),
        ("CONTAINER", Left),
        ("LEADS TO", Left),
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
