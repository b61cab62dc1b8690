//! The bridge of the test's other network, which goes with its one container.

use std::path::Path;

use serde_json::Map;
use shunt_netlink::Connection;
use shunt_netlink::link::{Selector, link};

use super::chain::{Call, Chain};
use super::undeleted::Undeleted;

pub(super) const BRIDGE: &str = "shunt-test1";

/// The name of the container's namespace.
pub(super) const CONTAINER: &str = "other";

/// Takes the bridge down by the plugin that made it; what is left of it is told.
pub(super) fn take_down(network: &Chain, undeleted: &Undeleted) {
    let call = Call { id: "shunt-test", netns: Path::new(""), runtime: &Map::new() };
    // Somebody else's interface may be on it by now.
    if let Err(error) = network.take_down(call)
        && is_there(BRIDGE)
    {
        undeleted.tell(format!("the bridge {BRIDGE}: {error}; `ip link delete {BRIDGE}` deletes it"));
    }
}

fn is_there(name: &str) -> bool {
    let found = Connection::open().and_then(|mut node| node.get(link(Selector::Name(name))));
    found.is_ok_and(|found| found.is_some())
}
