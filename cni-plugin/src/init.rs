//! INIT: makes a network ready before its first container. May be repeated.

use shunt_agent_api::{AgentStatus, Reply, Request};
use shunt_leases::Sharing;

use crate::add::ensure_bridge;
use crate::agent::Agent;
use crate::config::Config;
use crate::error::{Error, StatusError};
use crate::node::{Node, NodeError, lock_bridge};
use crate::plan::{BridgePlan, inherits_from};
use crate::undo::Journal;

/// Makes the bridge and sees that the agent serves. Gateway addresses come with the first container: only the IPAM
/// knows them.
pub(crate) fn init(config: &Config) -> Result<(), Error> {
    let bridge = config.bridge()?;
    let mut agent = Agent::of(config);
    if let Reply::Status(AgentStatus { obstacles, .. }) = agent.ask(Request::Status)?
        && !obstacles.is_empty()
    {
        return Err(StatusError::Unhealthy(obstacles).into());
    }
    let plan = BridgePlan {
        name: bridge.bridge.clone(),
        mtu: Some(bridge.mtu).filter(|mtu| *mtu > 0),
        promiscuous: bridge.promisc_mode,
        gateways: Vec::new(),
        vlan_gateway: None,
        force_address: false,
        inherits_from: inherits_from(&bridge),
    };
    let mut node = Node::open()?;
    let _lock = lock_bridge(agent.socket(), &plan.name, Sharing::Shared).map_err(NodeError::from)?;
    ensure_bridge(&mut node, &plan, &mut Journal::default()).map(drop)
}
