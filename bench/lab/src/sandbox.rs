//! A container that has been added to a network.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{Attachment, Container, Conversation, Echo, Lab, Namespace, Network, Node, Protocol};

/// A container and what its ADD gave.
#[derive(Debug)]
pub struct Sandbox {
    container: Container,
    attachment: Attachment,
}

impl Sandbox {
    /// Makes a container and adds it.
    ///
    /// # Errors
    /// When the ADD fails.
    pub fn start(lab: &Lab, node: &Node, network: &Network, id: &str) -> Result<Self> {
        let container = Container::create(lab, id)?;
        let attachment = network.add(node.namespace(), &container).with_context(|| format!("add {id}"))?;
        Ok(Self { container, attachment })
    }

    /// The container.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.container.id()
    }

    /// Its namespace.
    pub fn namespace(&self) -> &Namespace {
        self.container.namespace()
    }

    /// What its ADD gave.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Its addresses, in the order of the networks' ranges.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.attachment.addresses()
    }

    /// Starts an echo server on one of its addresses.
    ///
    /// # Errors
    /// When the address is not its own or the port is in use.
    pub fn echo(&self, address: IpAddr, port: u16) -> Result<Echo> {
        Echo::listen(self.namespace(), address, port)
    }

    /// Connects to an echo server.
    ///
    /// # Errors
    /// When there is none.
    pub fn talk_to(&self, protocol: Protocol, echo: &Echo) -> Result<Conversation> {
        Conversation::open(self.namespace(), protocol, echo.address())
    }

    /// Deletes it; how long that took.
    ///
    /// # Errors
    /// When a DEL fails.
    pub fn delete(&self, node: &Node, network: &Network) -> Result<Duration> {
        network.del(node.namespace(), &self.container, &self.attachment.result)
    }
}
