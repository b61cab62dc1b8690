//! The table of nf_tables that is shunt's. Of the tables of others only the number of their rules is told.

use std::path::Path;
use std::time::Instant;

use nix::libc;
use serde_json::json;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::base_chains;
use shunt_netlink::nf_tables::{TableRule, rule_counts, rules_of};

use super::command;
use super::part::{Had, Job, Lack};
use crate::nft::TABLE;

pub(super) fn jobs() -> Vec<Job> {
    vec![Job::new("nft.json", |_| by_netlink()), Job::new("nft.txt", by_program)]
}

/// As the kernel lists it: what each rule does is in the kernel's own encoding.
fn by_netlink() -> Result<Had, Lack> {
    let failed = |error: NetlinkError| Lack::Failed(format!("{error}: run it as root"));
    let is_ours = |family: u8, table: &str| i32::from(family) == libc::NFPROTO_INET && table == TABLE;
    let chains: Vec<_> = base_chains()
        .map_err(failed)?
        .into_iter()
        .filter(|chain| is_ours(chain.family, &chain.table))
        .map(|chain| json!({ "name": chain.name, "type": chain.kind, "hook": chain.hook, "rules": chain.rules }))
        .collect();
    let rules: Vec<_> = rules_of(TABLE).map_err(failed)?.iter().map(shown).collect();
    let others: Vec<_> = rule_counts()
        .map_err(failed)?
        .into_iter()
        .filter(|count| !is_ours(count.family, &count.table))
        .map(|count| json!({ "family": count.family, "table": count.table, "rules": count.rules }))
        .collect();
    Had::json(json!({ "table": TABLE, "chains": chains, "rules": rules, "others": others }))
}

fn shown(rule: &TableRule) -> serde_json::Value {
    let hex: String = rule.expressions.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "chain": rule.chain, "comment": comment(&rule.comment), "expressions": hex })
}

/// The text of user data: its type and length before it, a zero behind it.
fn comment(data: &[u8]) -> String {
    String::from_utf8_lossy(data.get(2..).unwrap_or_default()).trim_end_matches('\0').to_owned()
}

/// As people read it, where there is the program for that.
fn by_program(by: Instant) -> Result<Had, Lack> {
    let printed = command::run(Path::new("nft"), &["list", "table", "inet", TABLE], by)?;
    match printed.errors {
        _ if printed.success => Ok(Had::text(printed.output)),
        errors if errors.contains("No such file") => {
            Err(Lack::Absent(format!("there is no table inet {TABLE}")))
        }
        errors => Err(Lack::Failed(format!("nft: {}", errors.trim()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_read_without_what_is_around_it() {
        assert_eq!(comment(&[0, 4, b'o', b'n', b'e', 0]), "one");
        assert_eq!(comment(&[]), "");
    }
}
