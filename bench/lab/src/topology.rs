//! Pairs of ends that traffic can be measured between.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Result;

use crate::{Lab, Namespace, Sandbox};

/// Two ends and the address of the second.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    /// Where the client is.
    pub client: &'a Namespace,
    /// Where the server is.
    pub server: &'a Namespace,
    /// The server's own address.
    pub address: IpAddr,
    /// The port that a TCP server listens on; 0 is any.
    pub port: u16,
    /// Where the client finds it, when that is another place: a host port.
    pub through: Option<SocketAddr>,
}

impl<'a> Path<'a> {
    /// From one namespace to another, to an address of the second.
    pub fn direct(client: &'a Namespace, server: &'a Namespace, address: IpAddr) -> Self {
        Self { client, server, address, port: 0, through: None }
    }

    /// From one container to another, over IPv4.
    ///
    /// # Errors
    /// When the server has no IPv4 address.
    pub fn between(client: &'a Sandbox, server: &'a Sandbox) -> Result<Self> {
        let address = server.attachment().ipv4()?.into();
        Ok(Self::direct(client.namespace(), server.namespace(), address))
    }
}

/// Two namespaces joined by a veth pair and nothing else: the least that two containers can be apart.
#[derive(Debug)]
pub struct BareVeth {
    client: Namespace,
    server: Namespace,
}

/// The server's end of every [`BareVeth`].
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);

impl BareVeth {
    /// Makes the pair.
    ///
    /// # Errors
    /// When `ip` refuses.
    pub fn build(lab: &Lab, name: &str) -> Result<Self> {
        let client = lab.namespace(&format!("{name}-client"))?;
        let server = lab.namespace(&format!("{name}-server"))?;
        client.pair("eth0", &server, "eth0")?;
        for (end, address) in [(&client, "10.99.0.1/24"), (&server, "10.99.0.2/24")] {
            end.command("ip", &["address", "add", address, "dev", "eth0"])?;
        }
        Ok(Self { client, server })
    }

    /// Its two ends.
    pub fn path(&self) -> Path<'_> {
        Path::direct(&self.client, &self.server, SERVER.into())
    }
}
