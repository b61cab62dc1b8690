//! What the cases are tried on: two containers, the node, a host beyond it, and the agent that counts.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use shunt_agent_api::{Client, ClientError, Reply, Request};

use super::chain::Chain;
use super::directory::Directory;
use super::namespace::Namespace;
use super::outside::{Outside, OutsideError};
use super::sandbox::{Sandbox, SandboxError};
use super::undeleted::Undeleted;

/// The port of the server in a container.
pub(super) const SERVER: u16 = 7;

/// Why the test cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GroundError {
    #[error("container {0}: {1}")]
    Sandbox(&'static str, SandboxError),
    #[error("a host beyond the node: {0}")]
    Outside(#[from] OutsideError),
    #[error(transparent)]
    Agent(#[from] ClientError),
    #[error("no port of the node is free: {0}")]
    Port(io::Error),
}

/// Containers go before the directory that holds their namespaces.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) one: Sandbox,
    /// The one with a host port, where there are any.
    pub(super) two: Sandbox,
    pub(super) outside: Outside,
    pub(super) node: Namespace,
    pub(super) chain: Chain,
    pub(super) host_port: Option<u16>,
    pub(super) undeleted: Undeleted,
    socket: PathBuf,
    directory: Directory,
}

impl Ground {
    /// Makes all of it in the directory that holds its namespaces.
    ///
    /// # Errors
    /// [`GroundError`]; nothing is left then but what is told.
    pub(super) fn make(
        chain: Chain,
        socket: PathBuf,
        directory: Directory,
        undeleted: Undeleted,
    ) -> Result<Self, GroundError> {
        // An agent that does not answer lets no plugin succeed, and its message is better than theirs.
        Client::connect(&socket).and_then(|mut client| client.ask(Request::Status))?;
        let host_port = chain.has_capability("portMappings").then(free_port).transpose();
        let host_port = host_port.map_err(GroundError::Port)?;
        let mapping = |port| json!({ "portMappings": [{ "hostPort": port, "containerPort": SERVER, "protocol": "tcp" }] });
        let make = |name, runtime| {
            let sandbox = Sandbox::make(directory.path(), &chain, name, runtime, &undeleted);
            sandbox.map_err(|error| GroundError::Sandbox(name, error))
        };
        let one = make("one", Map::new())?;
        let two = make("two", object(host_port.map_or(Value::Null, mapping)))?;
        let outside = Outside::make(directory.path())?;
        let node = Namespace::of_node();
        Ok(Self { one, two, outside, node, chain, host_port, undeleted, socket, directory })
    }

    /// One more container, by another configuration or with more asked for.
    ///
    /// # Errors
    /// A plugin refuses.
    pub(super) fn add(&self, name: &str, chain: &Chain, asked: Value) -> Result<Sandbox, SandboxError> {
        Sandbox::make(self.directory.path(), chain, name, object(asked), &self.undeleted)
    }

    /// Packets of these containers by the fast path and by the kernel, both ways.
    ///
    /// # Errors
    /// The agent does not answer.
    pub(super) fn counted(&self, sandboxes: &[&Sandbox]) -> Result<[u64; 2], ClientError> {
        let Reply::Ports(ports) = self.ask(Request::Ports)? else { return Ok([0; 2]) };
        let ours = ports.iter().filter(|port| sandboxes.iter().any(|sandbox| sandbox.id == port.container));
        Ok(ours.fold([0; 2], |[fast, kernel], port| {
            [fast + port.from.fast + port.to.fast, kernel + port.from.kernel + port.to.kernel]
        }))
    }

    /// Where namespaces are held.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn ask(&self, request: Request) -> Result<Reply, ClientError> {
        Client::connect(&self.socket)?.ask(request)
    }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value { object } else { Map::new() }
}

/// A port that is free on the node at this moment.
pub(super) fn free_port() -> io::Result<u16> {
    let any = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
    Ok(TcpListener::bind(any)?.local_addr()?.port())
}
