//! Deleting a link for the plugin.
//!
//! The kernel takes a link out of its tables at once, but keeps the caller until every reader of the tables has moved
//! on (`rcu_barrier` in `netdev_run_todo`): some ten milliseconds that a thread here can spare and an exec cannot.

use std::path::PathBuf;
use std::{fs, io, thread};

use shunt_agent_api::Interface;
use shunt_netlink::Connection;

use crate::kernel::delete_if_named;
use crate::rcu::GracePeriods;

/// Begins to delete `interface`, and the pins of what was attached to it: a pin that goes after its link's device
/// costs nothing, one that goes before makes the kernel detach. Whoever asked looks for himself whether the link is gone, so a
/// failure is only logged.
pub(super) fn delete_in_background(interface: Interface, pins: Vec<PathBuf>, grace_periods: GracePeriods) {
    let name = interface.name.clone();
    let work = move || {
        let expedited = grace_periods.expedite();
        let deleted = Connection::open()
            .and_then(|mut connection| delete_if_named(&mut connection, interface.index, &interface.name));
        drop(expedited);
        if let Err(error) = deleted {
            tracing::warn!(link = interface.name, %error, "cannot delete the link");
        }
        for pin in pins {
            match fs::remove_file(&pin) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(pin = %pin.display(), %error, "cannot remove the pin");
                }
                _ => {}
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("delete-link".into()).spawn(work) {
        tracing::warn!(link = name, %error, "cannot start a thread to delete the link");
    }
}
