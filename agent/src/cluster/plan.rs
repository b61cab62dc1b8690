//! What the nodes of a cluster mean for this one.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;
use std::net::IpAddr;

use ipnet::IpNet;

use super::believable::objection;
use super::fault::{Fault, Reason};
use super::hop::Hop;
use super::members::{Member, Members};
use crate::config::{ClusterOptions, Routes};

/// Destinations that one container may have unmasqueraded.
const MOST: usize = 256;

/// Prefixes are not shortened further, of IPv4 and of IPv6, to make them fit.
const SHORTEST: [u8; 2] = [8, 32];

/// What is to be done on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The prefixes of this node's pods, at most one of each family.
    pub(crate) own: Vec<IpNet>,
    /// The address of this node that encapsulated packets come from: its first one.
    pub(crate) local: Option<IpAddr>,
    /// Prefixes of other nodes' pods, and where these nodes are.
    pub(crate) hops: Vec<Hop>,
    /// The prefixes of all pods, sorted: none of them is masqueraded.
    pub(crate) pods: Vec<IpNet>,
    /// What is wrong, and what to do.
    pub(crate) warnings: Vec<Fault>,
}

impl Plan {
    /// Decides. `node` is this node's name.
    pub(crate) fn of(options: &ClusterOptions, node: &str, members: &Members) -> Self {
        let local = members.0.get(node).and_then(|own| own.addresses.first().copied());
        let mut plan = Self { own: options.pod_cidrs.clone(), local, ..Self::default() };
        let addresses: BTreeSet<IpAddr> =
            members.0.values().flat_map(|member| member.addresses.iter().copied()).collect();
        if plan.own.is_empty() {
            let own = members.0.get(node).map(|own| firsts(&own.pod_cidrs)).unwrap_or_default();
            plan.own = own.into_iter().filter(|prefix| plan.believes(node, *prefix, &addresses)).collect();
            for unusable in &mut plan.warnings {
                unusable.reason = Some(Reason::PodCidrUnusable);
            }
        }
        if plan.own.is_empty() {
            plan.warnings.push(Reason::PodCidrMissing.fault(format!(
                "the node {node} has no pod CIDR, so no network configuration is written: have the controller manager allocate \
                 them (--allocate-node-cidrs), or set pod_cidrs"
            )));
        }
        let mut taken: BTreeMap<IpNet, &str> = plan.own.iter().map(|own| (*own, node)).collect();
        let mut others: Vec<_> = members.0.iter().filter(|(name, _)| *name != node).collect();
        // Nobody takes the prefix of a node that was there before.
        others.sort_by_key(|(name, member)| (member.created, *name));
        for (name, member) in others {
            for prefix in firsts(&member.pod_cidrs) {
                if !plan.believes(name, prefix, &addresses) {
                    continue;
                }
                match overlapping(&taken, prefix) {
                    None => {
                        taken.insert(prefix, name);
                        if options.routes != Routes::Off {
                            plan.lead_to(name, prefix, member, options.routes);
                        }
                    }
                    Some((other, whose)) => plan.warnings.push(Fault {
                        text: format!(
                            "the pod CIDR {prefix} of the node {name} overlaps with {other} of {whose}: no packet is led to {name}"
                        ),
                        reason: (whose == node).then_some(Reason::PodCidrOverlaps),
                    }),
                }
            }
        }
        plan.exempt(taken.into_keys().collect());
        plan
    }

    /// Whether a prefix may be that of a node's pods; else a warning says why not.
    fn believes(&mut self, name: &str, prefix: IpNet, addresses: &BTreeSet<IpAddr>) -> bool {
        let objection = objection(prefix, addresses);
        self.warnings.extend(
            objection.map(|why| {
                format!("the pod CIDR {prefix} of the node {name} {why}, and is passed over").into()
            }),
        );
        objection.is_none()
    }

    /// Leads to the pods of another node.
    fn lead_to(&mut self, name: &str, pods: IpNet, member: &Member, routes: Routes) {
        let node = member.address(pods.addr().is_ipv4());
        // Nodes send encapsulated packets from their first addresses, and take those of no other family.
        let is_like_own =
            |remote: &IpAddr| self.local.is_some_and(|local| local.is_ipv4() == remote.is_ipv4());
        let tunnel = member.addresses.first().copied().filter(is_like_own);
        let is_led = match routes {
            Routes::Host => node.is_some(),
            Routes::Vxlan => tunnel.is_some(),
            Routes::Auto => node.or(tunnel).is_some(),
            Routes::Off => false,
        };
        if is_led {
            self.hops.push(Hop { pods, node, tunnel });
        } else if routes == Routes::Vxlan {
            self.warnings.push(
                format!(
                "the first InternalIP of the node {name} is not of the family of this node's: no packet is led to {pods}"
                )
                .into(),
            );
        } else {
            self.warnings.push(
                format!(
                "the node {name} has no InternalIP of the family of its pod CIDR {pods}: no packet is led there"
                )
                .into(),
            );
        }
    }

    /// Leaves pods that go to these their own addresses.
    fn exempt(&mut self, prefixes: Vec<IpNet>) {
        let Fitting { prefixes, is_widened } = fitting(prefixes);
        self.pods = prefixes;
        if is_widened {
            self.warnings.push(
                format!(
                "the pod CIDRs are more than {MOST} prefixes: neighbouring addresses are not masqueraded either"
                )
                .into(),
            );
        }
    }
}

/// The first prefix of each family.
fn firsts(prefixes: &[IpNet]) -> Vec<IpNet> {
    let first = |is_v4: bool| prefixes.iter().find(|prefix| prefix.addr().is_ipv4() == is_v4);
    [first(true), first(false)].into_iter().flatten().map(IpNet::trunc).collect()
}

/// One of the prefixes that holds another one, or is within it. Sorted, those within come right behind the one that holds them.
fn overlapping<'a>(taken: &BTreeMap<IpNet, &'a str>, prefix: IpNet) -> Option<(IpNet, &'a str)> {
    let mut around = successors(Some(prefix), IpNet::supernet).map(|prefix| prefix.trunc());
    let holds = around.find_map(|around| taken.get_key_value(&around));
    let within = || taken.range(prefix..).next().filter(|(other, _)| prefix.contains(*other));
    holds.or_else(within).map(|(other, whose)| (*other, *whose))
}

struct Fitting {
    prefixes: Vec<IpNet>,
    is_widened: bool,
}

/// The prefixes in as few as hold them exactly; where these are still too many, in shorter ones.
fn fitting(prefixes: Vec<IpNet>) -> Fitting {
    let mut fitting = Fitting { prefixes: IpNet::aggregate(&prefixes), is_widened: false };
    while fitting.prefixes.len() > MOST {
        let longest = fitting.prefixes.iter().filter(|prefix| may_widen(prefix)).map(IpNet::prefix_len).max();
        let Some(longest) = longest else { break };
        let widened = fitting.prefixes.iter().map(|prefix| match prefix.supernet() {
            Some(wider) if prefix.prefix_len() == longest && may_widen(prefix) => wider,
            _ => *prefix,
        });
        fitting = Fitting { prefixes: IpNet::aggregate(&widened.collect()), is_widened: true };
    }
    fitting.prefixes.truncate(MOST);
    fitting.prefixes.sort_unstable();
    fitting
}

fn may_widen(prefix: &IpNet) -> bool {
    prefix.prefix_len() > SHORTEST[usize::from(prefix.addr().is_ipv6())]
}
