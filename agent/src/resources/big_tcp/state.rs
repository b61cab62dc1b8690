//! What the agent remembers of the sizes of packets.

use std::time::Instant;

use shunt_agent_api::BigTcp;
use shunt_netlink::link::Link;

use crate::config::Config;

/// How large packets may be.
#[derive(Debug)]
pub(crate) struct PacketSizing {
    /// Of networks that do not say it.
    pub(super) mode: BigTcp,
    /// Whether an uplink's queue is shared out: it has room for some packets of 64 KiB, and would lose larger ones.
    pub(super) has_shares: bool,
    /// The device to nodes that are not on the link, if the agent may have one.
    pub(super) tunnel: Option<String>,
    /// The ways out as they were found last, and when that was.
    pub(super) ways_out: Option<(Instant, Vec<Link>)>,
}

impl PacketSizing {
    pub(crate) fn new(config: &Config) -> Self {
        let tunnel = config.cluster.as_ref().map(|cluster| cluster.vxlan.device.clone());
        let has_shares = config.uplinks.values().any(|uplink| uplink.guarantee);
        Self { mode: config.big_tcp, has_shares, tunnel, ways_out: None }
    }
}
