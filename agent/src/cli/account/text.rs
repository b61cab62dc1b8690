//! Accounts as text.

use super::balance::Account;
use crate::cli::escape::line;
use crate::cli::table::{Align::Left, Align::Right, Table, grouped};

/// A line for each direction of each port, and below what was dropped and what is missing.
pub(super) fn accounts_text(accounts: &[Account]) -> String {
    let mut table = Table::new([
        ("NETWORK", Left),
        ("CONTAINER", Left),
        ("IF", Left),
        ("WAY", Left),
        ("IN", Right),
        ("DELIVERED", Right),
        ("PASSED", Right),
        ("DROPPED", Right),
    ]);
    let mut remarks = String::new();
    for account in accounts {
        for (way, direction) in [("from", account.from), ("to", account.to)] {
            let figures = [direction.arrived, direction.delivered, direction.passed, direction.dropped];
            let [arrived, delivered, passed, dropped] = figures.map(grouped);
            let container = account.container.chars().take(13).collect();
            let (network, ifname) = (account.network.clone(), account.ifname.clone());
            table.row([network, container, ifname, way.to_owned(), arrived, delivered, passed, dropped]);
        }
        remarks.push_str(&remarks_on(account));
    }
    match accounts.is_empty() {
        true => "no attachments\n".to_owned(),
        false if remarks.is_empty() => table.to_string(),
        false => format!("{table}\n{remarks}"),
    }
}

fn remarks_on(account: &Account) -> String {
    let Account { network, container, ifname, drops, unaccounted, moving, .. } = account;
    let mut remarks = Vec::new();
    let reasons: Vec<_> =
        drops.iter().map(|drop| format!("{} {}", drop.reason, grouped(drop.packets))).collect();
    if !reasons.is_empty() {
        remarks.push(format!("dropped: {}", reasons.join(", ")));
    }
    if unaccounted.packets != 0 {
        let by = "packets from the container are unaccounted for";
        remarks.push(format!("{} {by} ({} moved meanwhile)", unaccounted.packets, grouped(*moving)));
    }
    if unaccounted.drops != 0 {
        remarks.push(format!("{} dropped packets are without a reason", unaccounted.drops));
    }
    remarks.iter().map(|remark| line(&format!("{network}/{container}/{ifname}: {remark}"))).collect()
}
