//! The one netlink of shunt's plugin and agent: a socket that hears the kernel only, requests and their answers, blocking, and a
//! function for each verb.
//!
//! Messages are built by `rtnetlink` and read by `netlink-packet-*`, attribute by attribute, so that one that this version has never
//! heard of is skipped and not an error. What asks the kernel fails with a [`NetlinkError`].
//! What is done by hand is named in docs/adr/0001-one-netlink.md.

#![forbid(unsafe_code)]

pub mod address;
pub mod attribute;
pub mod bridge;
pub mod bridge_filtering;
pub mod bridge_vlan;
mod connection;
pub mod conntrack;
mod error;
pub mod ethtool;
pub mod failpoint;
pub mod fdb;
pub mod kept_route;
pub mod l3_config;
pub mod link;
pub mod message;
mod monitor;
pub mod namespace;
pub mod namespace_cookie;
pub mod namespace_id;
pub mod neighbour;
pub mod netconf;
pub mod netfilter;
pub mod nf_tables;
mod nfnetlink;
pub mod policy_rule;
pub mod prefix;
mod request;
pub mod route;
mod rule_changes;
pub mod sock_diag;
mod socket;
mod socket_filter;
pub mod tc;
pub mod vtep;

pub use connection::{Answers, Connection};
pub use error::{NetlinkError, unless};
pub use monitor::{LinkEvent, LinkMonitor};
pub use netlink_packet_route::AddressFamily;
pub use request::{Acknowledged, Reply, Request};
pub use rule_changes::RuleChanges;
pub use socket::Socket;
