//! Bridges, their ports and what they know of stations.

use shunt_dataplane::wire::address::Mac;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::bridge_vlan::{PortVlans, vlans_of};
use shunt_netlink::fdb::{FdbEntry, listen_to, place_station, refresh_station, station, stop_listening_to};
use shunt_netlink::link::{
    Link, Selector, add_bridge, leave_master, set_alias, set_link_up, set_master, set_port_flags,
};
use shunt_netlink::{NetlinkError, unless};

use super::{Kernel, KernelError};
use crate::registry::Uplink;

impl Kernel {
    /// Enslaves a link to a bridge again, with its port flags and the container's FDB entry.
    ///
    /// # Errors
    /// Netlink's.
    pub fn enslave(
        &mut self,
        index: u32,
        bridge: u32,
        flags: PortFlags,
        container: Option<(Mac, bool)>,
    ) -> Result<(), KernelError> {
        self.route.run(set_master(index, bridge))?;
        self.set_port_flags(index, flags, container)
    }

    /// Sets a port's flags and its container's static FDB entry: only stations with such an entry may send on
    /// a locked port.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_port_flags(
        &mut self,
        index: u32,
        flags: PortFlags,
        container: Option<(Mac, bool)>,
    ) -> Result<(), KernelError> {
        if let Some((mac, is_fixed)) = container {
            self.add_station(index, mac, is_fixed)?;
        }
        Ok(self.route.run(set_port_flags(index, flags.exact()))?)
    }

    /// Restores the static FDB entry of a port's container, unless the address is an interface's own by now.
    ///
    /// # Errors
    /// Netlink's.
    pub fn add_station(&mut self, index: u32, mac: Mac, is_fixed: bool) -> Result<(), KernelError> {
        let bridge = self.link(index)?.and_then(|link| link.master).unwrap_or_default();
        let known = self.placement(bridge, mac)?;
        match place_station(index, mac.octets(), is_fixed, known.as_ref()) {
            Some(request) => Ok(self.route.run(request)?),
            None => Ok(()),
        }
    }

    /// Where a bridge takes a station to be.
    ///
    /// # Errors
    /// Netlink's.
    pub fn placement(&mut self, bridge: u32, mac: Mac) -> Result<Option<FdbEntry>, KernelError> {
        Ok(self.route.get(station(bridge, mac.octets()))?)
    }

    /// Whether a bridge has the FDB entry of a port's station: the fixed one at this port; any other may have moved.
    ///
    /// # Errors
    /// Netlink's.
    pub fn has_station(
        &mut self,
        bridge: u32,
        index: u32,
        mac: Mac,
        is_fixed: bool,
    ) -> Result<bool, KernelError> {
        let placement = self.placement(bridge, mac)?;
        Ok(placement.is_some_and(|placement| match is_fixed {
            true => placement.port == index && placement.sticky,
            false => placement.port != index || placement.told,
        }))
    }

    /// The VLANs of a bridge's port, or of the bridge itself.
    ///
    /// # Errors
    /// Netlink's.
    pub fn vlans(&mut self, index: u32) -> Result<PortVlans, KernelError> {
        Ok(PortVlans::all(self.route.list(vlans_of(index))?))
    }

    /// Recreates a bridge, unless a link of its name exists.
    ///
    /// # Errors
    /// Netlink's.
    pub fn make_bridge(&mut self, like: &Link) -> Result<(), KernelError> {
        match self.route.run(add_bridge(like)) {
            Err(error) if error.is_existing() => return Ok(()),
            other => other?,
        }
        let Some(alias) = &like.alias else { return Ok(()) };
        Ok(self.route.run(set_alias(Selector::Name(&like.name), alias))?)
    }

    /// The bridge of this name, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn bridge_named(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        Ok(self.link_named(name)?.filter(|found| found.kind.as_deref() == Some("bridge")))
    }

    /// Adds a station to the FDB of the kernel's bridge, which does not see the frames of the fast path.
    ///
    /// # Errors
    /// Netlink's.
    pub fn refresh_station(&mut self, ifindex: u32, mac: Mac) -> Result<(), KernelError> {
        Ok(self.route.run(refresh_station(ifindex, mac.octets()))?)
    }

    /// Adds a VLAN interface's MAC address to the master's unicast filter, as the kernel's VLAN devices do.
    ///
    /// # Errors
    /// Netlink's.
    pub fn add_filter_address(&mut self, master: u32, mac: Mac) -> Result<(), KernelError> {
        let told = self.route.run(listen_to(master, mac.octets()));
        Ok(unless(told, NetlinkError::is_existing)?)
    }

    /// Removes it again; the master may be gone.
    ///
    /// # Errors
    /// Netlink's.
    pub fn remove_filter_address(&mut self, master: u32, mac: Mac) -> Result<(), KernelError> {
        let told = self.route.run(stop_listening_to(master, mac.octets()));
        Ok(unless(told, NetlinkError::is_missing)?)
    }

    /// Enslaves an uplink to its bridge and sets it up.
    ///
    /// # Errors
    /// Netlink's.
    pub fn enslave_uplink(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        self.enslave(uplink.link.index, uplink.bridge.index, PortFlags::default(), None)?;
        Ok(self.route.run(set_link_up(Selector::Index(uplink.link.index)))?)
    }

    /// Releases an uplink, if it is still a port of its bridge.
    ///
    /// # Errors
    /// Netlink's.
    pub fn release_uplink(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        let link = self.link(uplink.link.index)?.filter(|link| link.name == uplink.link.name);
        if link.is_none_or(|link| link.master != Some(uplink.bridge.index)) {
            return Ok(());
        }
        Ok(self.route.run(leave_master(uplink.link.index))?)
    }
}
