//! Deletes links in the background.
//!
//! The kernel unregisters a link at once but blocks the caller in `netdev_run_todo` (`rcu_barrier`) for milliseconds: too long for the
//! plugin's process and for the agent's thread.

use std::path::PathBuf;
use std::{fs, io, thread};

use shunt_agent_api::Interface;
use shunt_netlink::Connection;

use crate::kernel::delete_if_named;
use crate::rcu::GracePeriods;

/// Deletes `interface`, and then the pins of its programs: a pin that is removed first makes the kernel
/// detach its link. The plugin waits for the deletion itself, so a failure is only logged.
pub(crate) fn delete_in_background(interface: Interface, pins: Vec<PathBuf>, grace_periods: GracePeriods) {
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
