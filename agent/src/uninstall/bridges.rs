//! The marks on links: bridges of ours without a port go, all else goes on without its mark.

use shunt_netlink::link::{Link, Selector, delete_link, links, set_alias};
use shunt_netlink::{Connection, NetlinkError, unless};

/// The plugin's mark on a bridge that it made.
const BRIDGE: &str = "shunt";

/// What its marks on containers' interfaces begin with.
const INTERFACE: &str = "shunt:";

/// Removes every mark in the namespace. Says what could not be.
pub(super) fn forget() -> Vec<String> {
    let listed = Connection::open().and_then(|mut connection| {
        let links = connection.list(links())?;
        Ok((connection, links))
    });
    let (mut connection, links) = match listed {
        Ok(listed) => listed,
        Err(error) => return vec![format!("the marks on links: {error}")],
    };
    let mut left = Vec::new();
    for link in &links {
        let Some(alias) = link.alias.as_deref() else { continue };
        let is_bridge = alias == BRIDGE && link.kind.as_deref() == Some("bridge");
        let has_ports = links.iter().any(|port| port.master == Some(link.index));
        let selector = Selector::Index(link.index);
        let forgotten = match is_bridge {
            true if !has_ports => connection.run(delete_link(selector)),
            _ if is_bridge || alias.starts_with(INTERFACE) => connection.run(set_alias(selector, "")),
            _ => continue,
        };
        left.extend(unless(forgotten, NetlinkError::is_missing).map_err(|error| say(link, &error)).err());
    }
    left
}

fn say(link: &Link, error: &NetlinkError) -> String {
    format!("the mark of {}: {error}", link.name)
}
