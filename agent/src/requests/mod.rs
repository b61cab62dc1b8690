//! What is asked of the agent, one file a request.
//!
//! What is valid becomes the desired state, and the resources make it so.

mod address;
mod adopt;
mod attach;
mod check;
#[cfg(feature = "kubernetes")]
pub(crate) mod claim_usages;
mod detach;
#[cfg(feature = "kubernetes")]
pub(crate) mod devices;
mod exempt;
mod limit;
mod map;
#[cfg(feature = "kubernetes")]
mod noticed;
#[cfg(feature = "kubernetes")]
pub(crate) mod prepare;
pub(crate) mod query;
mod restore;
#[cfg(feature = "kubernetes")]
mod unprepare;
mod update;

use shunt_agent_api::{Reply, Request};

use crate::resources::Node;

/// Handles a request.
pub(crate) fn answer(node: &mut Node, request: Request) -> Reply {
    #[cfg(feature = "kubernetes")]
    let pod = noticed::pod_of(node, &request);
    let answer = match request {
        Request::Attach { port, set_up } => node.attach_as(port, set_up).map(Reply::Attached),
        Request::Adopt { port } => node.adopt(port).map(Reply::Attached),
        Request::Detach { key, link } => Ok(Reply::Detached(node.detach(&key, link))),
        Request::Restore { port } => node.restore(port).map(Reply::Attached),
        Request::Check { port } => node.check(&port).map(|()| Reply::Checked),
        Request::Collect { network, valid } => Ok(Reply::Collected(node.collect(&network, &valid))),
        Request::CheckLimit { key, bandwidth } => node.check_limit(&key, &bandwidth).map(|()| Reply::Checked),
        Request::Limit { key, bandwidth } => node.limit(&key, bandwidth).map(|()| Reply::Limited),
        Request::Update { port, keeps_mappings } => node.update(port, keeps_mappings).map(Reply::Attached),
        Request::Address { port } => node.address(port).map(Reply::Attached),
        Request::Map { key, mappings } => node.map(&key, mappings).map(Reply::Attached),
        Request::Exempt { network, destinations } => {
            node.exempt(&network, &destinations).map(|()| Reply::Exempted)
        }
        Request::CheckMap { key, mappings } => node.check_map(&key, &mappings).map(|()| Reply::Checked),
        Request::Status => Ok(Reply::Status(node.status())),
        Request::Ports => node.ports().map(Reply::Ports),
        // Core's readers answer these two beside the agent's thread.
        Request::Flows => Ok(query::flows::all(&node.tallies.table, &node.pod_owners())),
        Request::Mappings => Ok(query::mappings::reports(&node.tallies, node.host_ports())),
        Request::Fdb => node.fdb().map(Reply::Fdb),
        Request::Drops => node.drops().map(Reply::Drops),
        Request::Account => node.accounts().map(Reply::Account),
        Request::Capacity => Ok(Reply::Capacity(node.capacity())),
        Request::Explain { from, packet } => node.explain(&from, &packet).map(Reply::Explained),
        Request::Audit => node.audit_all().map(Reply::Audited),
        Request::Config => Ok(Reply::Config(node.config())),
        // The connection handles both itself.
        Request::Subscribe => Ok(Reply::Subscribed),
        Request::Watch(_) => Ok(Reply::Watching),
    };
    node.look_after_watchers();
    node.tell_capacity();
    node.update_guarantees();
    #[cfg(feature = "kubernetes")]
    if let (Some(pod), Err(refusal)) = (pod, &answer) {
        noticed::notice(node, pod, refusal);
    }
    answer.unwrap_or_else(|refusal| Reply::Error(refusal.into()))
}
