//! Rules that masquerade what leaves a network.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use nix::libc;

use super::expression::{Comparison, Expressions, Side};

const GROUPS_V4: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 4));
const GROUPS_V6: IpNet = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8));

/// What leaves a network's prefix for anywhere else, but for groups, gets the node's address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MasqueradeRule {
    /// The network's name, which `nft list ruleset` shows beside the rule.
    pub network: String,
    /// The containers' addresses.
    pub prefix: IpNet,
}

impl MasqueradeRule {
    pub(super) fn steps(&self) -> Expressions {
        let prefix = &self.prefix;
        let (family, groups) = if prefix.addr().is_ipv4() {
            (libc::NFPROTO_IPV4, GROUPS_V4)
        } else {
            (libc::NFPROTO_IPV6, GROUPS_V6)
        };
        Expressions::default()
            .family(family as u8)
            .address(Side::Source, Comparison::Is, prefix)
            .address(Side::Destination, Comparison::IsNot, prefix)
            .address(Side::Destination, Comparison::IsNot, &groups)
            .masquerade()
    }
}
