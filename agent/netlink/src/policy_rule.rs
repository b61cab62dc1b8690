//! Rules that choose a routing table (`ip rule`), ip-rule(8).

use netlink_packet_core::Parseable as _;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};

use crate::attribute::attributes;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::{Reply, Request};

/// Bytes of `struct fib_rule_hdr` (linux/fib_rules.h).
const HEADER: usize = 12;

/// The type of service in `struct fib_rule_hdr`.
const TOS: usize = 3;

/// What policy rules ask for beside addresses and interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selectors {
    /// A packet's mark.
    pub by_mark: bool,
    /// Its protocol, its ports or its type of service.
    pub by_kind: bool,
}

impl Reply for Selectors {
    fn read(payload: &[u8]) -> Option<Self> {
        let mut found = Self { by_mark: false, by_kind: *payload.get(TOS)? != 0 };
        for attribute in attributes(payload.get(HEADER..)?) {
            match RuleAttribute::parse(&attribute) {
                Ok(RuleAttribute::FwMark(mark) | RuleAttribute::FwMask(mark)) => found.by_mark |= mark != 0,
                Ok(
                    RuleAttribute::IpProtocol(_)
                    | RuleAttribute::SourcePortRange(_)
                    | RuleAttribute::DestinationPortRange(_),
                ) => found.by_kind = true,
                _ => {}
            }
        }
        Some(found)
    }
}

/// What the policy rules of this namespace ask for, of both families.
///
/// # Errors
/// Every kind of [`NetlinkError`].
pub fn selectors() -> Result<Selectors, NetlinkError> {
    let request =
        Request::dump("list the policy rules", RouteNetlinkMessage::GetRule(RuleMessage::default()));
    let rules: Vec<Selectors> = Connection::open()?.list(request)?;
    let both = |one: Selectors, other: &Selectors| Selectors {
        by_mark: one.by_mark || other.by_mark,
        by_kind: one.by_kind || other.by_kind,
    };
    Ok(rules.iter().fold(Selectors::default(), both))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;

    #[test]
    fn rules_by_mark_and_by_kind_are_told_from_others() {
        let found = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            let after = |words: &str| {
                let arguments = words.split(' ').filter(|word| !word.is_empty());
                assert!(Command::new("ip").args(arguments).status().expect("ip runs").success());
                let Selectors { by_mark, by_kind } = selectors().unwrap();
                (by_mark, by_kind)
            };
            [
                after("rule add from 10.0.0.0/8 lookup 100"),
                after("-6 rule add fwmark 0x7/0xf lookup 100"),
                after("-6 rule delete fwmark 0x7/0xf"),
                after("rule add not fwmark 0xca6c lookup 51820"),
                after("rule delete not fwmark 0xca6c lookup 51820"),
                after("rule add ipproto tcp dport 25 lookup 100"),
                after("rule delete ipproto tcp dport 25 lookup 100"),
                after("rule add tos 0x10 lookup 100"),
            ]
        });
        let (none, mark, kind) = ((false, false), (true, false), (false, true));
        assert_eq!(found.join().unwrap(), [none, mark, none, mark, none, kind, none, kind]);
    }
}
