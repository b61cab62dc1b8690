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

/// Whether a rule asks for a packet's mark.
struct IsByMark(bool);

impl Reply for IsByMark {
    fn read(payload: &[u8]) -> Option<Self> {
        let mut all = attributes(payload.get(HEADER..)?);
        let is_mark = |attribute: RuleAttribute| {
            matches!(attribute, RuleAttribute::FwMark(mark) if mark != 0)
                || matches!(attribute, RuleAttribute::FwMask(mask) if mask != 0)
        };
        Some(Self(all.any(|attribute| RuleAttribute::parse(&attribute).is_ok_and(is_mark))))
    }
}

/// Whether any rule of this namespace asks for a packet's mark, of either family.
///
/// # Errors
/// Every kind of [`NetlinkError`].
pub fn is_any_by_mark() -> Result<bool, NetlinkError> {
    let request =
        Request::dump("list the policy rules", RouteNetlinkMessage::GetRule(RuleMessage::default()));
    let rules: Vec<IsByMark> = Connection::open()?.list(request)?;
    Ok(rules.iter().any(|IsByMark(is_by_mark)| *is_by_mark))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;

    #[test]
    fn only_rules_that_ask_for_a_mark_are_by_mark() {
        let found = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            let ip = |arguments: &[&str]| {
                assert!(Command::new("ip").args(arguments).status().expect("ip runs").success());
                is_any_by_mark().unwrap()
            };
            let none = is_any_by_mark().unwrap();
            let by_source = ip(&["rule", "add", "from", "10.0.0.0/8", "lookup", "100"]);
            let v6 = ip(&["-6", "rule", "add", "fwmark", "0x7/0xf", "lookup", "100"]);
            let gone = ip(&["-6", "rule", "delete", "fwmark", "0x7/0xf"]);
            let inverse = ip(&["rule", "add", "not", "fwmark", "0xca6c", "lookup", "51820"]);
            [none, by_source, v6, gone, inverse]
        });
        assert_eq!(found.join().unwrap(), [false, false, true, false, true]);
    }
}
