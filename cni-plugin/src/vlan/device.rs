//! A VLAN device of the kernel's, on the master and in the container from its first moment.

use std::os::fd::AsFd;

use nix::errno::Errno;
use shunt_netlink::link::{Link, Selector, VlanDevice, add_vlan, set_alias};

use super::share::Wanted;
use crate::add::{Attachment, Context, configure, wait_for_addresses};
use crate::error::{AttachError, Error};
use crate::mac::Mac;
use crate::node::Alias;
use crate::plan::Plan;
use crate::result::AddResult;
use crate::undo::Step;

/// A container's interface as a device of the kernel's.
#[derive(Debug)]
pub(super) struct Device<'a> {
    wanted: &'a Wanted<'a>,
    /// What is known without addresses.
    outline: Plan,
}

impl<'a> Device<'a> {
    /// The device has its master's address.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(super) fn new(wanted: &'a Wanted<'a>) -> Result<Self, Error> {
        let mac = wanted.master.link.mac.map_or_else(Mac::random, Mac::new);
        Ok(Self { wanted, outline: wanted.plan(mac, None)? })
    }
}

impl Attachment for Device<'_> {
    /// The device.
    type Ends = Link;

    type Joined = ();

    /// Makes the device, down.
    ///
    /// # Errors
    /// [`AttachError::NoVlanDevices`] where the kernel has none, [`AttachError::Unjoinable`] for a loopback.
    fn make(&self, context: &mut Context) -> Result<Link, Error> {
        let Wanted { vlan, call, master, .. } = self.wanted;
        // The kernel calls it an invalid argument: a loopback's MTU is more than any other device can have.
        master.expect_ethernet()?;
        let Context { node, sandbox, journal, .. } = context;
        let request = add_vlan(&VlanDevice {
            name: &call.ifname,
            master: master.link.index,
            id: vlan.vlan_id,
            mtu: master.mtu(vlan),
            namespace: (!master.within).then(|| sandbox.namespace.as_fd()),
        });
        let made = if master.within { sandbox.netlink.run(request) } else { node.netlink.run(request) };
        made.map_err(|error| match error.errno() {
            Some(Errno::EOPNOTSUPP) => AttachError::NoVlanDevices.into(),
            Some(Errno::EEXIST) => {
                AttachError::VlanTaken { id: vlan.vlan_id, master: master.link.name.clone() }.into()
            }
            _ => Error::from(error),
        })?;
        journal.push(Step::Device { name: call.ifname.clone() });
        let link = sandbox.link(Selector::Name(&call.ifname))?;
        Ok(link.ok_or_else(|| AttachError::Vanished(call.ifname.clone()))?)
    }

    fn outline(&self) -> &Plan {
        &self.outline
    }

    fn plan(&self, addresses: Option<AddResult>) -> Result<Plan, Error> {
        self.wanted.plan(self.outline.mac, addresses)
    }

    fn join(&self, plan: &Plan, link: &Link, context: &mut Context) -> Result<(), Error> {
        context.sandbox.netlink.run(set_alias(Selector::Index(link.index), &Alias::of(&plan.key)))?;
        self.give_addresses(plan, link, context)
    }

    /// Nobody but the kernel has it: it takes addresses while it is up.
    fn give_addresses(&self, plan: &Plan, link: &Link, context: &mut Context) -> Result<(), Error> {
        configure(&context.node, &mut context.sandbox, plan, link.index)?;
        wait_for_addresses(&mut context.sandbox, plan, link.index)
    }

    fn result(&self, plan: &Plan, link: &Link, (): (), _: &mut Context) -> Result<AddResult, Error> {
        Ok(self.wanted.result(plan, link))
    }

    fn is_made_first(&self) -> bool {
        true
    }
}
