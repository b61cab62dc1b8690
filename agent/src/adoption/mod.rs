//! Running containers of another project's bridge, taken onto the fast path and given back, without a restart.
//!
//! In: what runtimes remember of them. A port is taken only where the kernel agrees with that: the host's end is a veth on a bridge, and its
//! peer has the name and the MAC address that the runtime was told. What would be bypassed, or would judge otherwise, is refused by name;
//! rules for bridged packets are bypassed unless the agent heeds them (`filters`).
//! Links, addresses and rules are not touched: they stay their maker's, and so does the DEL.

mod cache;

use std::io;
use std::path::Path;

use shunt_agent_api::{
    AttachmentKey, Bandwidth, BridgePort, Client, ClientError, ConfigReport, Interface, PortReport, Reply,
    Request, Restrictions, Service,
};
use shunt_netlink::link::{Link, Selector, link, link_elsewhere, links};
use shunt_netlink::{Connection, NetlinkError};

use self::cache::Remembered;
use crate::resources::external_rule::hooks;

/// What the alias of a host's end begins with that shunt made.
const MARK: &str = "shunt:";

/// Why nothing could be looked at.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// What runtimes remember.
    #[error("what the runtimes remember cannot be read: {0}")]
    Cache(#[from] io::Error),
    /// The kernel.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The agent.
    #[error(transparent)]
    Agent(#[from] ClientError),
}

/// What became of the containers.
#[derive(Debug, Default)]
pub struct Adopted {
    /// Those that are served now, or no more.
    pub done: Vec<AttachmentKey>,
    /// Those that were left as they are, and why.
    pub left: Vec<(AttachmentKey, String)>,
}

/// Takes the containers of `bridge`, or of every bridge, onto the fast path.
///
/// # Errors
/// [`AdoptError`]; a container that cannot be taken is in the answer.
pub fn adopt(client: &mut Client, cache: &Path, bridge: Option<&str>) -> Result<Adopted, AdoptError> {
    let mut connection = Connection::open()?;
    let links = connection.list(links())?;
    let filter = bypassed(client)?;
    let mut adopted = Adopted::default();
    for remembered in cache::read(cache)? {
        let Some((host, master)) = port_of(&remembered, &links) else { continue };
        if bridge.is_some_and(|bridge| bridge != master.name) || is_ours(host) {
            continue;
        }
        let key = remembered.key.clone();
        let refused = match &filter {
            Some(who) => Some(format!("{who} would be bypassed: set filters = \"auto\" in the agent's file")),
            None => refusal(&mut connection, &remembered, host, master)?,
        };
        let taken = match refused {
            Some(why) => Err(why),
            None => attach(client, port(remembered, host, master)),
        };
        match taken {
            Ok(()) => adopted.done.push(key),
            Err(why) => adopted.left.push((key, why)),
        }
    }
    Ok(adopted)
}

/// Gives the containers of `bridge`, or of every bridge, that shunt did not make back to the kernel's bridge.
///
/// # Errors
/// [`AdoptError`]; the containers before are given back.
pub fn give_back(client: &mut Client, bridge: Option<&str>) -> Result<Adopted, AdoptError> {
    let mut connection = Connection::open()?;
    let links = connection.list(links())?;
    let ports = match client.ask(Request::Ports)? {
        Reply::Ports(ports) => ports,
        _ => Vec::new(),
    };
    let mut given = Adopted::default();
    for PortReport { network, container, ifname, host_ifindex, .. } in ports {
        let Some(host) = links.iter().find(|link| link.index == host_ifindex) else { continue };
        let master = links.iter().find(|link| Some(link.index) == host.master);
        let is_wanted = bridge.is_none_or(|bridge| master.is_some_and(|master| master.name == bridge));
        if is_ours(host) || !is_wanted {
            continue;
        }
        let key = AttachmentKey { network, container, ifname };
        client.ask(Request::Detach { key: key.clone(), link: None })?;
        given.done.push(key);
    }
    Ok(given)
}

/// The first who has rules for bridged packets that the agent does not heed.
fn bypassed(client: &mut Client) -> Result<Option<String>, AdoptError> {
    let is_heeding = match client.ask(Request::Config)? {
        Reply::Config(ConfigReport { keys, .. }) => {
            keys.iter().any(|key| key.key == "filters" && key.value != "bypass")
        }
        _ => false,
    };
    Ok(if is_heeding { None } else { hooks::first_of_bridged()? })
}

fn is_ours(host: &Link) -> bool {
    host.alias.as_deref().is_some_and(|alias| alias.starts_with(MARK))
}

/// The host's end and its bridge, where the result names such a pair.
fn port_of<'a>(remembered: &Remembered, links: &'a [Link]) -> Option<(&'a Link, &'a Link)> {
    let named = links.iter().filter(|link| remembered.on_node.contains(&link.name));
    named.filter(|link| link.kind.as_deref() == Some("veth")).find_map(|host| {
        let master = links.iter().find(|link| Some(link.index) == host.master)?;
        (master.kind.as_deref() == Some("bridge")).then_some((host, master))
    })
}

/// Why a port is left alone; none where it can be taken.
fn refusal(
    connection: &mut Connection,
    remembered: &Remembered,
    host: &Link,
    master: &Link,
) -> Result<Option<String>, NetlinkError> {
    if master.bridging.filters_vlans {
        return Ok(Some(format!("the bridge {} filters VLANs", master.name)));
    }
    if host.port_flags.isolated || host.port_flags.locked {
        return Ok(Some(format!("the port {} is restricted by its bridge", host.name)));
    }
    let inner = match (host.peer, host.peer_namespace) {
        (Some(peer), Some(namespace)) => connection.get(link_elsewhere(peer, namespace))?,
        (Some(peer), None) => connection.get(link(Selector::Index(peer)))?,
        (None, _) => None,
    };
    let is_it = inner.is_some_and(|inner| {
        inner.name == remembered.key.ifname && inner.mac.map(text) == Some(remembered.mac.clone())
    });
    Ok((!is_it).then(|| format!("the other end of {} is not what the runtime remembers", host.name)))
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn port(remembered: Remembered, host: &Link, master: &Link) -> BridgePort {
    let interface = |link: &Link| Interface { name: link.name.clone(), index: link.index };
    BridgePort {
        key: remembered.key,
        bridge: interface(master),
        host: interface(host),
        mac: remembered.mac,
        ips: remembered.ips,
        mtu: host.mtu,
        netns: Some(remembered.netns),
        peer_up: host.carrier,
        masquerade: Vec::new(),
        unmasqueraded: Vec::new(),
        restrictions: Restrictions::default(),
        mappings: Vec::new(),
        bandwidth: Bandwidth::default(),
        service: Service { hairpin: host.port_flags.hairpin, ..Service::default() },
        lease_dir: None,
        vlan: None,
        pod: None,
    }
}

fn attach(client: &mut Client, port: BridgePort) -> Result<(), String> {
    client.ask(Request::Adopt { port }).map(drop).map_err(|error| error.to_string())
}
