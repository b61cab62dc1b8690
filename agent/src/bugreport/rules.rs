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
    json!({ "chain": rule.chain, "comment": comment(&rule.comment), "expressions": words(&rule.expressions) })
}

/// Bytes as hexadecimal words of four, as netlink aligns them. In one word they would be taken for a container's id, and hashed.
fn words(bytes: &[u8]) -> String {
    let word = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(" ")
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
    use super::super::names::Names;
    use super::super::part::{Content, Outcome};
    use super::*;

    #[test]
    fn a_comment_is_read_without_what_is_around_it() {
        assert_eq!(comment(&[0, 4, b'o', b'n', b'e', 0]), "one");
        assert_eq!(comment(&[]), "");
    }

    #[test]
    fn with_names_hashed_an_expression_is_what_it_was_and_a_containers_id_is_not() {
        // `meta nfproto ipv4`, as the kernel lists it.
        let mut expressions = vec![0x2c, 0, 1, 0, 9, 0, 1, 0];
        expressions.extend(*b"meta\0\0\0\0");
        expressions.extend([0x1c, 0, 2, 0x80, 8, 0, 2, 0, 0, 0, 0, 0x0f, 8, 0, 1, 0, 0, 0, 0, 1]);
        let id = "0af3b4c5".repeat(8);
        let user_data = [&[0, 66][..], id.as_bytes(), b"\0"].concat();
        let rule = TableRule { chain: "host-ports".to_owned(), expressions, comment: user_data };
        let outcome = Outcome(Had::json(json!({ "rules": [shown(&rule)] })));
        let names = Names::of("node-1", Path::new("/nowhere"), &[]);
        let hashed = outcome.map_text(&|text: String| names.hide(&text));
        let Ok(Had { content: Content::Json(report), .. }) = hashed.0 else { panic!("no report") };
        let rule = &report["rules"][0];
        let wanted = "2c000100 09000100 6d657461 00000000 1c000280 08000200 0000000f 08000100 00000001";
        assert_eq!(rule["expressions"], wanted);
        assert!(rule["comment"].as_str().is_some_and(|comment| comment.starts_with("name-")), "{rule}");
    }
}
