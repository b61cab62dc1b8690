//! The table of masquerade rules.

use std::collections::BTreeSet;

use nix::libc;

use super::attribute::Attributes;
use super::batch::{Batch, Committed, NftError};
use super::expression::{Comparison, Expressions, Side};
use super::prefix::Prefix;

const TABLE: &str = "shunt";
const CHAIN: &str = "postrouting";

const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const RULE_USERDATA: u16 = 7;
/// In user data, a comment as `nft` shows it: type 0, length, text with a zero behind it.
const COMMENT: u8 = 0;

/// What leaves a network's prefix for anywhere else, but for groups, gets the node's address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MasqueradeRule {
    /// The network's name, which `nft list ruleset` shows beside the rule.
    pub network: String,
    /// The containers' addresses.
    pub prefix: Prefix,
}

/// Makes these the only rules, as one transaction; without any the table goes.
///
/// # Errors
/// [`NftError`]; the rules are as they were.
pub fn replace(rules: &BTreeSet<MasqueradeRule>) -> Result<Committed, NftError> {
    let table = Attributes::default().text(TABLE_NAME, TABLE);
    let mut batch = Batch::new();
    // A table that is not there cannot be deleted: it is made first, which changes nothing where it is.
    batch.add("the table", libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE, &table);
    batch.add("the old table's end", libc::NFT_MSG_DELTABLE, 0, &table);
    if !rules.is_empty() {
        batch.add("the new table", libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE, &table);
        batch.add("the chain", libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE, &chain());
        for masquerade in rules {
            batch.add(
                "a rule",
                libc::NFT_MSG_NEWRULE,
                libc::NLM_F_CREATE | libc::NLM_F_APPEND,
                &rule(masquerade),
            );
        }
    }
    batch.commit()
}

fn chain() -> Attributes {
    let hook = Attributes::default()
        .number(HOOK_NUMBER, libc::NF_INET_POST_ROUTING as u32)
        .number(HOOK_PRIORITY, libc::NF_IP_PRI_NAT_SRC as u32);
    Attributes::default()
        .text(CHAIN_TABLE, TABLE)
        .text(CHAIN_NAME, CHAIN)
        .nest(CHAIN_HOOK, hook)
        .text(CHAIN_TYPE, "nat")
}

fn rule(masquerade: &MasqueradeRule) -> Attributes {
    let MasqueradeRule { network, prefix } = masquerade;
    let (family, groups) =
        if prefix.is_v4() { (libc::NFPROTO_IPV4, "224.0.0.0/4") } else { (libc::NFPROTO_IPV6, "ff00::/8") };
    let mut steps = Expressions::default()
        .family(family as u8)
        .address(Side::Source, Comparison::Is, prefix)
        .address(Side::Destination, Comparison::IsNot, prefix);
    if let Ok(groups) = groups.parse() {
        steps = steps.address(Side::Destination, Comparison::IsNot, &groups);
    }
    Attributes::default()
        .text(RULE_TABLE, TABLE)
        .text(RULE_CHAIN, CHAIN)
        .nest(RULE_EXPRESSIONS, steps.masquerade().into_attributes())
        .bytes(RULE_USERDATA, &comment(network))
}

fn comment(text: &str) -> Vec<u8> {
    // The length is one byte; a longer name is shown in part.
    let shown: String = text.chars().take(60).collect();
    let length = u8::try_from(shown.len() + 1).unwrap_or(u8::MAX);
    [&[COMMENT, length], shown.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;

    /// The rules as `nft` reads them, in a namespace that goes with its thread.
    fn listed_after(steps: &[&[(&str, &str)]]) -> String {
        std::thread::scope(|scope| {
            let lister = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                for step in steps {
                    let rules = step.iter().map(|(network, prefix)| MasqueradeRule {
                        network: (*network).to_owned(),
                        prefix: prefix.parse().unwrap(),
                    });
                    drop(replace(&rules.collect()).unwrap());
                }
                let listed = Command::new("nft").args(["list", "ruleset"]).output().expect("nft runs");
                String::from_utf8(listed.stdout).unwrap()
            });
            lister.join().unwrap()
        })
    }

    #[test]
    fn nft_reads_back_what_was_meant() {
        let listed =
            listed_after(&[&[("one", "10.77.0.9/24"), ("one", "fd77::/64"), ("two", "10.78.0.0/16")]]);
        for line in [
            "type nat hook postrouting priority srcnat; policy accept;",
            "ip saddr 10.77.0.0/24 ip daddr != 10.77.0.0/24 ip daddr != 224.0.0.0/4 masquerade comment \"one\"",
            "ip6 saddr fd77::/64 ip6 daddr != fd77::/64 ip6 daddr != ff00::/8 masquerade comment \"one\"",
            "ip saddr 10.78.0.0/16 ip daddr != 10.78.0.0/16 ip daddr != 224.0.0.0/4 masquerade comment \"two\"",
        ] {
            assert!(listed.contains(line), "{line} in {listed}");
        }
    }

    #[test]
    fn replacing_leaves_nothing_of_what_was() {
        let listed = listed_after(&[&[("one", "10.77.0.0/24")], &[("two", "10.78.0.0/24")]]);
        assert!(!listed.contains("10.77") && listed.contains("10.78"), "{listed}");
        assert_eq!(listed_after(&[&[("one", "10.77.0.0/24")], &[]]), "");
        assert_eq!(listed_after(&[&[]]), "");
    }
}
