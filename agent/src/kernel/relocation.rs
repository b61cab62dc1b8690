//! Moves addresses, routes and neighbours between an uplink and its bridge.
//!
//! During a move the node has its addresses on both interfaces, and the routes use the uplink exactly as long as it is a port: a port still
//! sends, and the bridge receives the answers. The node is reachable at every moment, and an interrupted move can be repeated or reverted
//! from the start. The bridge takes the uplink's MAC address, so that switches, DHCP servers and neighbours see no change.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_agent_api::Interface;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::l3_config::{
    L3Address, L3Config, are_usable, give_addresses, give_neighbours, give_routes, l3_config, take_addresses,
    take_neighbours, take_routes,
};
use shunt_netlink::link::Link;
use shunt_netlink::link::{Selector, leave_master, set_link_up, set_mac};

use super::{Kernel, KernelError};
use crate::failpoints::{self, Failpoint};
use crate::registry::Uplink;
use crate::state::Relocation;

/// How long a bridge may take to get a carrier from its first port.
const PATIENCE: Duration = Duration::from_secs(2);

impl Kernel {
    /// What an interface has, and its routes by next hop objects.
    ///
    /// # Errors
    /// Netlink's.
    pub fn l3_config(&mut self, index: u32) -> Result<(L3Config, Vec<String>), KernelError> {
        Ok(l3_config(&mut self.route, index)?)
    }

    /// Enslaves an uplink and moves its addresses, routes and neighbours to the bridge.
    ///
    /// # Errors
    /// Netlink's; [`KernelError::Asleep`]. Some may have been moved.
    pub fn move_to_bridge(&mut self, uplink: &Uplink, relocation: &Relocation) -> Result<(), KernelError> {
        let (from, to, moved) = (&uplink.link, &uplink.bridge, &relocation.l3_config);
        self.set_bridge_mac(to, uplink.mac)?;
        self.route.run(set_link_up(Selector::Index(to.index)))?;
        give_addresses(&mut self.route, &moved.addresses, (to.index, &to.name))?;
        give_neighbours(&mut self.route, &moved.neighbours, from.index, to.index)?;
        self.enslave_uplink(uplink)?;
        self.await_bridge(uplink)?;
        self.await_addresses(&moved.addresses, to)?;
        give_routes(&mut self.route, &moved.routes, to.index)?;
        take_routes(&mut self.route, &moved.routes, &moved.addresses, from.index)?;
        take_addresses(&mut self.route, &moved.addresses, (from.index, &from.name))?;
        Ok(take_neighbours(&mut self.route, &moved.neighbours, from.index)?)
    }

    /// Returns addresses, routes and neighbours to an uplink, and releases it unless it was a port before. A
    /// deleted bridge has lost them already.
    ///
    /// # Errors
    /// Netlink's; some may have been moved.
    pub fn move_home(
        &mut self,
        relocation: &Relocation,
        uplink: &Link,
        bridge: Option<&Link>,
    ) -> Result<(), KernelError> {
        let moved = &relocation.l3_config;
        let to = Interface { name: uplink.name.clone(), index: uplink.index };
        let from = &relocation.bridge;
        self.route.run(set_link_up(Selector::Index(to.index)))?;
        give_addresses(&mut self.route, &moved.addresses, (to.index, &to.name))?;
        give_neighbours(&mut self.route, &moved.neighbours, from.index, to.index)?;
        give_routes(&mut self.route, &moved.routes, to.index)?;
        if bridge.is_none() {
            return Ok(());
        }
        self.await_addresses(&moved.addresses, &to)?;
        let own: Vec<L3Address> = moved.addresses.iter().filter(|address| !address.shared).cloned().collect();
        take_routes(&mut self.route, &moved.routes, &own, from.index)?;
        if !relocation.kept && uplink.master == Some(from.index) {
            self.route.run(leave_master(to.index))?;
        }
        take_addresses(&mut self.route, &own, (from.index, &from.name))?;
        take_neighbours(&mut self.route, &moved.neighbours, from.index)?;
        self.set_bridge_mac(from, Mac::new(relocation.bridge_mac))
    }

    /// Changes a bridge's MAC address and announces it: the bridge is its containers' gateway.
    fn set_bridge_mac(&mut self, to: &Interface, mac: Mac) -> Result<(), KernelError> {
        if self.link(to.index)?.is_some_and(|link| link.mac == Some(mac.octets())) {
            return Ok(());
        }
        let settings = ["ipv4", "ipv6"].map(|family| {
            let what = if family == "ipv4" { "arp_notify" } else { "ndisc_notify" };
            format!("/proc/sys/net/{family}/conf/{}/{what}", to.name)
        });
        // Without the announcement neighbours notice later.
        let were = settings.each_ref().map(|setting| {
            let was = fs::read_to_string(setting).ok().filter(|was| was.trim() == "0");
            was.filter(|_| write(setting, "1"))
        });
        let set = self.route.run(set_mac(to.index, mac.octets()));
        for (setting, was) in settings.iter().zip(were) {
            was.map(|was| write(setting, was.trim()));
        }
        Ok(set?)
    }

    /// Waits until new addresses are usable. One that never becomes usable was not usable before, either.
    fn await_addresses(&mut self, addresses: &[L3Address], at: &Interface) -> Result<(), KernelError> {
        let begun = Instant::now();
        while !are_usable(&mut self.route, addresses, at.index)? && begun.elapsed() < PATIENCE {
            sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Waits until the bridge is operational. Does not wait for an uplink without a carrier.
    fn await_bridge(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        let begun = Instant::now();
        loop {
            let has_carrier = self.link(uplink.link.index)?.is_some_and(|link| link.carrier);
            let is_alive = self.link(uplink.bridge.index)?.is_some_and(|link| link.running);
            if is_alive || !has_carrier {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(KernelError::Asleep(uplink.bridge.name.clone()));
            }
            sleep(Duration::from_micros(200));
        }
    }
}

fn write(setting: &str, value: &str) -> bool {
    failpoints::pass(Failpoint::Files).and_then(|()| fs::write(setting, value)).is_ok()
}
