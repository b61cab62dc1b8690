//! The interface that a VLAN is on.

use shunt_agent_api::{Interface, VlanInterface};
use shunt_netlink::link::{Link, Selector};

use crate::config::{ConfigError, Vlan};
use crate::error::{AttachError, Error};
use crate::node::{Node, Sandbox};
use crate::plan::interface;

/// Where it is.
#[derive(Debug)]
pub(super) struct Master {
    /// The interface.
    pub(super) link: Link,
    /// Whether it is in the container.
    pub(super) within: bool,
}

impl Master {
    /// Finds it. `ifname` is that of the chain's first plugin.
    pub(super) fn find(
        vlan: &Vlan,
        ifname: &str,
        node: &mut Node,
        sandbox: &mut Sandbox,
    ) -> Result<Self, Error> {
        let within = vlan.link_in_container;
        let name = if vlan.is_chained() { ifname } else { &vlan.master };
        let link = if within { sandbox.link(Selector::Name(name)) } else { node.link(Selector::Name(name)) }?;
        let Some(link) = link else {
            let place = if within { "in the container" } else { "on the node" };
            return Err(invalid("master", format!("there is no interface `{name}` {place}")));
        };
        if vlan.mtu > link.mtu {
            let why = format!("{} is more than `{name}` has, {}", vlan.mtu, link.mtu);
            return Err(invalid("mtu", why));
        }
        Ok(Self { link, within })
    }

    /// MTU of the VLAN's interface.
    pub(super) fn mtu(&self, vlan: &Vlan) -> u32 {
        if vlan.mtu == 0 { self.link.mtu } else { vlan.mtu }
    }

    /// The end on the node of a veth in the container.
    pub(super) fn host(&self, node: &mut Node, sandbox: &Sandbox) -> Result<Option<Link>, Error> {
        if !self.within {
            return Ok(None);
        }
        Ok(node.host_end(sandbox, &self.link)?)
    }

    /// What the agent is to join a VLAN to: a master on the node, or the host's end of one in the container.
    ///
    /// # Errors
    /// [`AttachError::Unjoinable`].
    pub(super) fn trunk(
        &self,
        vlan: &Vlan,
        node: &mut Node,
        sandbox: &Sandbox,
    ) -> Result<(Interface, VlanInterface), Error> {
        let unjoinable = |why| self.unjoinable(why);
        let is = |kind: &str| self.link.kind.as_deref() == Some(kind);
        if vlan.vlan_id == 0 {
            return Err(unjoinable("VLAN 0 needs a VLAN device of the kernel's").into());
        }
        self.expect_ethernet()?;
        let trunk = match self.link.peer {
            _ if !self.within && is("bridge") => {
                return Err(unjoinable("it is a bridge, of which a container can be a port in VLANs").into());
            }
            _ if !self.within => self.link.clone(),
            Some(_) if is("veth") => {
                self.host(node, sandbox)?.ok_or_else(|| unjoinable("its other end is not on this node"))?
            }
            _ => return Err(unjoinable("it is no veth, whose other end could be joined").into()),
        };
        let joins = VlanInterface { id: vlan.vlan_id, within: self.within };
        Ok((interface(&trunk), joins))
    }

    /// Whether frames go there, which tags can be put into.
    ///
    /// # Errors
    /// [`AttachError::Unjoinable`].
    pub(super) fn expect_ethernet(&self) -> Result<(), Error> {
        if self.link.mac.is_none() || self.link.loopback {
            return Err(self.unjoinable("it is not an Ethernet interface").into());
        }
        Ok(())
    }

    fn unjoinable(&self, why: &'static str) -> AttachError {
        AttachError::Unjoinable { master: self.link.name.clone(), why }
    }
}

fn invalid(key: &'static str, why: String) -> Error {
    ConfigError::Invalid { key, why }.into()
}
