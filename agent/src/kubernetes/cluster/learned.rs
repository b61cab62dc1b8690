//! What the API server says of the nodes, as far as it makes sense.

use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use shunt_netlink::prefix;

use super::condition;
use crate::cluster::{Member, Members};

/// As many nodes are known; Kubernetes itself goes no further.
pub(super) const MOST: usize = 5000;

/// Prefixes and addresses that are read of one node.
const MOST_OF_NODE: usize = 8;

/// What the server says.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The nodes.
    pub(super) members: Members,
    /// Whether this node's network is said to be unavailable, or nothing is said of it.
    pub(super) is_unavailable: bool,
    /// Why nothing newer is known.
    pub(super) fault: Option<String>,
}

/// Notes a node; whether that is news.
pub(super) fn learn(known: &mut Known, own: &str, node: &Node) -> bool {
    let name = node.name_any();
    let mut is_news = false;
    if name == own {
        let is_unavailable = condition::is_unavailable(node);
        is_news = is_unavailable != known.is_unavailable;
        known.is_unavailable = is_unavailable;
    }
    let member = member(node);
    if known.members.0.get(&name) == Some(&member) {
        return is_news;
    }
    if let Some(was) = known.members.0.get(&name) {
        tracing::warn!(node = name, ?was, is = ?member, "the node has changed its addresses or pod CIDRs: pods that run keep theirs");
    } else if known.members.0.len() >= MOST {
        return is_news;
    }
    known.members.0.insert(name, member);
    true
}

/// A node, without what makes no sense.
fn member(node: &Node) -> Member {
    let spec = node.spec.clone().unwrap_or_default();
    let cidrs = spec.pod_cidrs.filter(|cidrs| !cidrs.is_empty()).or(spec.pod_cidr.map(|cidr| vec![cidr]));
    let pod_cidrs = cidrs.unwrap_or_default();
    let pod_cidrs =
        pod_cidrs.iter().filter_map(|text| prefix::parse(text).ok()).map(|prefix: IpNet| prefix.trunc());
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let internal = addresses.filter(|address| address.type_ == "InternalIP");
    let usable = |ip: &IpAddr| !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast();
    Member {
        pod_cidrs: pod_cidrs.take(MOST_OF_NODE).collect(),
        created: node.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
        addresses: internal
            .filter_map(|one| one.address.parse().ok())
            .filter(usable)
            .take(MOST_OF_NODE)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, cidrs: &[&str], address: &str) -> Node {
        let node = json!({
            "metadata": { "name": name },
            "spec": { "podCIDRs": cidrs },
            "status": { "addresses": [
                { "type": "Hostname", "address": name },
                { "type": "ExternalIP", "address": "203.0.113.9" },
                { "type": "InternalIP", "address": address },
            ] },
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_node_is_news_once() {
        let mut known = Known::default();
        let one = node("a", &["10.244.1.0/24", "fd01::/64"], "192.0.2.1");
        assert!(learn(&mut known, "a", &one));
        assert!(known.is_unavailable, "nothing is said of its network");
        assert!(!learn(&mut known, "a", &one));
        assert!(learn(&mut known, "a", &node("a", &["10.244.1.0/24", "fd01::/64"], "192.0.2.7")));
        assert_eq!(known.members.0["a"].addresses, ["192.0.2.7".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let member = member(&node("a", &["pods", "10.0.0.0/40"], "127.0.0.1"));
        assert_eq!(member, Member::default());
        assert_eq!(super::member(&Node::default()), Member::default());
    }
}
