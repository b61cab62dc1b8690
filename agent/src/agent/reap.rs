//! Deleting a link for the plugin.
//!
//! The kernel takes a link out of its tables at once, but keeps the caller until every reader of the tables has moved
//! on (`rcu_barrier` in `netdev_run_todo`): some ten milliseconds that a thread here can spare and an exec cannot.

use std::thread;

use nix::libc;
use shunt_agent_api::Interface;

use crate::netlink::link;
use crate::netlink::socket::RequestSocket;

/// Begins to delete `interface`. Whoever asked looks for himself whether it is gone, so a failure is only logged.
pub(super) fn reap(interface: Interface) {
    let name = interface.name.clone();
    let work = move || {
        let deleted = RequestSocket::open(libc::NETLINK_ROUTE).and_then(|mut socket| {
            // The index alone could mean a link that was made since.
            match link::by_index(&mut socket, interface.index)? {
                Some(found) if found.name == interface.name => link::delete(&mut socket, interface.index),
                _ => Ok(()),
            }
        });
        if let Err(error) = deleted {
            tracing::warn!(link = interface.name, %error, "could not be deleted");
        }
    };
    if let Err(error) = thread::Builder::new().name("reap".into()).spawn(work) {
        tracing::warn!(link = name, %error, "no thread to delete it");
    }
}
