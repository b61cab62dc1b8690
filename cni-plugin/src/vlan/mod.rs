//! A VLAN's interface in a container, as the reference vlan plugin makes one.
//!
//! It has two forms behind one configuration: a VLAN device of the kernel's (`device.rs`) or, where the kernel has none or two
//! containers share one VLAN of one master, a veth that the agent joins to the master (`joined.rs`). Behind another plugin
//! in a chain it is made on that plugin's interface, and is an attachment of its own: under its own name, with its own
//! addresses.

mod add;
mod check;
mod del;
mod device;
mod joined;
mod master;
mod share;

use crate::call::{Call, Verb};
use crate::config::Config;
use crate::error::Error;
use crate::{gc, status};

/// Does what was asked; answers what is to be printed, if anything.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    let own = || config.vlan().map(|vlan| (own_call(call, vlan.interface(&call.ifname)), vlan));
    match call.verb {
        Verb::Add => {
            let (own, vlan) = own()?;
            let made = add::add(config, &vlan, &own, &call.ifname)?;
            Ok(Some(made.print(config.version)?))
        }
        Verb::Check | Verb::Finalize => {
            let (own, vlan) = own()?;
            check::check(config, &vlan, &own, &call.ifname).map(|()| None)
        }
        Verb::Del => {
            let vlan = config.vlan_unchecked()?;
            del::del(config, &own_call(call, vlan.interface(&call.ifname))).map(|()| None)
        }
        Verb::Gc => gc::gc(config, call).map(|()| None),
        Verb::Status => {
            config.vlan()?;
            status::serves(config, call).map(|()| None)
        }
        // The master is the node's, and is there or is not.
        Verb::Init => Ok(config.vlan().map(|_| None)?),
        Verb::Deinit | Verb::Version | Verb::Validate | Verb::Capacity => Ok(None),
    }
}

/// The call for the interface's own name, which an IPAM is told as well.
fn own_call(call: &Call, ifname: String) -> Call {
    Call { ifname, ..call.clone() }
}
