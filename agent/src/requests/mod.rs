//! What is asked of the agent, one file a request.
//!
//! `admission` decides and changes nothing; what is admitted becomes the desired state, and the resources make it so.

mod address;
pub(crate) mod admission;
mod attach;
mod check;
mod detach;
mod limit;
mod map;
mod occupied;
mod query;
mod taken;
mod update;

use shunt_agent_api::{Reply, Request};

use crate::resources::Node;

impl Node {
    /// Handles a request.
    pub(crate) fn answer(&mut self, request: Request) -> Reply {
        let answer = match request {
            Request::Attach { port, set_up } => self.attach_as(port, set_up).map(Reply::Attached),
            Request::Detach { key, link } => Ok(Reply::Detached(self.detach(&key, link))),
            Request::Check { port } => self.check(&port).map(|()| Reply::Checked),
            Request::Collect { network, valid } => Ok(Reply::Collected(self.collect(&network, &valid))),
            Request::CheckLimit { key, bandwidth } => {
                self.check_limit(&key, &bandwidth).map(|()| Reply::Checked)
            }
            Request::Limit { key, bandwidth } => self.limit(&key, bandwidth).map(|()| Reply::Limited),
            Request::Update { port, keeps_mappings } => {
                self.update(port, keeps_mappings).map(Reply::Attached)
            }
            Request::Address { port } => self.address(port).map(Reply::Attached),
            Request::Map { key, mappings } => self.map(&key, mappings).map(Reply::Attached),
            Request::CheckMap { key, mappings } => self.check_map(&key, &mappings).map(|()| Reply::Checked),
            Request::Status => Ok(Reply::Status(self.status())),
            Request::Ports => self.ports().map(Reply::Ports),
            Request::Flows => self.flows().map(Reply::Flows),
            Request::Mappings => self.mapping_reports().map(Reply::Mappings),
            Request::Fdb => self.fdb().map(Reply::Fdb),
            Request::Drops => self.drops().map(Reply::Drops),
            Request::Capacity => Ok(Reply::Capacity(self.capacity())),
            Request::Explain { from, packet } => self.explain(&from, &packet).map(Reply::Explained),
            Request::Audit => self.audit_all().map(Reply::Audited),
            // The connection handles the subscription itself.
            Request::Subscribe => Ok(Reply::Subscribed),
        };
        self.tell_capacity();
        answer.unwrap_or_else(|refusal| Reply::Error(refusal.into()))
    }
}
