//! The status as text.

use shunt_agent_api::{AgentStatus, BridgeUplinkReport, FilterReport, GracePeriodReport, VlanGatewayReport};

use super::escape::line;
use super::table::{Align::Left, Align::Right, Table, bytes, grouped};

pub(super) fn status_text(status: &AgentStatus) -> String {
    let health = if status.healthy { "healthy" } else { "NOT HEALTHY" };
    let mut text = format!(
        "shunt-agent {} (map ABI {}): {health}, {} attachments, {} repairs\n",
        status.version, status.abi, status.attachments, status.repairs
    );
    for reason in &status.reasons {
        text.push_str(&line(&format!("  reason: {reason}")));
    }
    for warning in &status.warnings {
        text.push_str(&line(&format!("  warning: {warning}")));
    }
    if let Some(GracePeriodReport { mode, expedited, reason }) = &status.grace_periods {
        let length = if *expedited { "expedited around each attach and detach" } else { "normal" };
        text.push_str(&line(&format!("  grace periods: {length} ({mode}: {reason})")));
    }
    if let Some(filters) = status.filters.as_deref() {
        text.push_str(&filters_text(filters));
    }
    if !status.uplinks.is_empty() {
        text.push_str(&line(&format!("  uplinks: {}", status.uplinks.join(", "))));
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
        text.push_str(&line(&format!(
            "  {} {has} the addresses of {}: {addresses}",
            moved.bridge, moved.uplink
        )));
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

/// Whose rules are asked for what.
fn filters_text(report: &FilterReport) -> String {
    let FilterReport { mode, heeded, by, opens, opens_by, masquerades_by, carries, .. } = report;
    let why = |by: &[String]| if by.is_empty() { String::new() } else { format!(": {}", by.join(", ")) };
    let mut text = String::new();
    if *heeded {
        let why = why(by);
        text.push_str(&line(&format!(
            "  others' rules are asked for flows between containers ({mode}{why})"
        )));
    } else {
        let why = if mode == "bypass" { "" } else { ": nobody has rules that may refuse or change any" };
        text.push_str(&line(&format!(
            "  others' rules are not asked for flows between containers ({mode}{why})"
        )));
    }
    if *opens {
        let why = why(opens_by);
        text.push_str(&line(&format!("  the kernel opens host ports, by others' rules ({mode}{why})")));
    }
    if let Some(why) = masquerades_by {
        let carried = if *carries { ", and the programs carry those that last" } else { "" };
        text.push_str(&line(&format!("  the kernel begins masqueraded connections ({why}){carried}")));
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
