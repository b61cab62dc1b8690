//! An agent is asked as over its socket.

use shunt_agent::Agent;
use shunt_agent_api::{AgentError, AttachmentKey, BridgePort, Reply, Request};

/// The requests of the models.
pub(crate) trait Asked {
    fn attach(&mut self, port: BridgePort) -> Result<(), AgentError>;
    fn attach_as(&mut self, port: BridgePort, set_up: bool) -> Result<(), AgentError>;
    fn check(&mut self, port: &BridgePort) -> Result<(), AgentError>;
    fn detach(&mut self, key: &AttachmentKey, link: Option<shunt_agent_api::Interface>);
    fn collect(&mut self, network: &str, valid: &[AttachmentKey]);
}

impl Asked for Agent {
    fn attach(&mut self, port: BridgePort) -> Result<(), AgentError> {
        self.attach_as(port, false)
    }

    fn attach_as(&mut self, port: BridgePort, set_up: bool) -> Result<(), AgentError> {
        done(self.answer(Request::Attach { port, set_up }))
    }

    fn check(&mut self, port: &BridgePort) -> Result<(), AgentError> {
        done(self.answer(Request::Check { port: port.clone() }))
    }

    fn detach(&mut self, key: &AttachmentKey, link: Option<shunt_agent_api::Interface>) {
        done(self.answer(Request::Detach { key: key.clone(), link })).unwrap();
    }

    fn collect(&mut self, network: &str, valid: &[AttachmentKey]) {
        done(self.answer(Request::Collect { network: network.to_owned(), valid: valid.to_vec() })).unwrap();
    }
}

fn done(reply: Reply) -> Result<(), AgentError> {
    match reply {
        Reply::Error(error) => Err(error),
        _ => Ok(()),
    }
}
