//! A VLAN device of the kernel's, on the master and in the container from its first moment.

use std::os::fd::AsFd;

use nix::errno::Errno;
use shunt_netlink::link::{Link, Selector, VlanDevice, add_vlan, delete_link, set_alias, set_link_up};

use super::master::Master;
use super::share;
use crate::attach::{self, Alias, AttachError, Node, Sandbox, wait_for_addresses};
use crate::config::{Config, Vlan};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::mac::Mac;
use crate::protocol::Call;
use crate::result::AddResult;

/// Makes the device, down.
///
/// # Errors
/// [`AttachError::NoVlanDevices`] where the kernel has none, [`AttachError::Unjoinable`] for a loopback; nothing is left
/// behind.
pub(super) fn make(
    vlan: &Vlan,
    master: &Master,
    call: &Call,
    node: &mut Node,
    sandbox: &mut Sandbox,
) -> Result<Link, Error> {
    // The kernel calls it an invalid argument: a loopback's MTU is more than any other device can have.
    master.expect_ethernet()?;
    let device = VlanDevice {
        name: &call.ifname,
        master: master.link.index,
        id: vlan.vlan_id,
        mtu: master.mtu(vlan),
        namespace: (!master.within).then(|| sandbox.namespace.as_fd()),
    };
    let request = add_vlan(&device);
    let made = if master.within { sandbox.netlink.run(request) } else { node.netlink.run(request) };
    made.map_err(|error| match error.errno() {
        Some(Errno::EOPNOTSUPP) => AttachError::NoVlanDevices.into(),
        Some(Errno::EEXIST) => {
            AttachError::VlanTaken { id: vlan.vlan_id, master: master.link.name.clone() }.into()
        }
        _ => Error::from(error),
    })?;
    let link = sandbox.link(Selector::Name(&call.ifname))?;
    Ok(link.ok_or_else(|| AttachError::Vanished(call.ifname.clone()))?)
}

/// Gives the device its addresses and sets it up, or takes it away again.
#[expect(clippy::too_many_arguments, reason = "both places, and what is to be where")]
pub(super) fn configure(
    config: &Config,
    vlan: &Vlan,
    master: &Master,
    call: &Call,
    node: &Node,
    sandbox: &mut Sandbox,
    link: &Link,
    previous: AddResult,
) -> Result<AddResult, Error> {
    let mut asked = false;
    let made = Ipam::of(config, call).map_err(Error::from).and_then(|ipam| {
        if ipam.needs_interface() {
            sandbox.netlink.run(set_link_up(Selector::Index(link.index)))?;
        }
        let addresses = ipam.exists().then(|| {
            asked = true;
            ipam.add()
        });
        let mac = link.mac.map(Mac::new).ok_or_else(|| AttachError::Vanished(link.name.clone()))?;
        let plan = share::plan(config, call, master.mtu(vlan), mac, addresses.transpose()?)?;
        let alias = Alias::of(&plan.key);
        let mark = alias.map(|alias| set_alias(Selector::Index(link.index), &alias));
        sandbox.netlink.run_all(mark.into_iter().collect())?;
        attach::configure(node, sandbox, &plan, link.index)?;
        wait_for_addresses(sandbox, &plan, link.index)?;
        Ok(share::result(&plan, link, previous))
    });
    made.map_err(|error| {
        // A DHCP client gives its lease back by the interface.
        let released = asked.then(|| Ipam::of(config, call).and_then(|ipam| ipam.del()).err()).flatten();
        let deleted = sandbox.netlink.run(delete_link(Selector::Index(link.index)));
        let deleted = deleted.err().filter(|error| !error.is_missing()).map(Error::from);
        error.after_undo(deleted.into_iter().chain(released.map(Error::from)).collect())
    })
}
