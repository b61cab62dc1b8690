//! The way to the agent.

use shunt_agent_api::{Client, ClientError, socket_path};

use crate::config::Config;

/// Connects to the agent that the configuration, the environment or the default names.
///
/// # Errors
/// [`ClientError::Unreachable`].
pub(crate) fn connect(config: &Config) -> Result<Client, ClientError> {
    Client::connect(&socket_path(config.network.agent_socket.as_deref()))
}
