//! Attaches a port: state file, map entries, programs. A failed attach leaves nothing.

use shunt_agent_api::{Attached, BridgePort, EventKind, Interface};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use super::change::Change;
use super::leases::admit_leases;
use super::{Agent, Refusal, admit};
use crate::capacity::Demand;
use crate::kernel::{Asks, KernelError, limit_egress_beside};
use crate::registry::{Attachment, Bridge, PeerEnd, Trunk};

impl Agent {
    /// Attaches programs and map entries to a port. Repeating a request changes nothing.
    ///
    /// # Errors
    /// [`Refusal`]; nothing stays behind.
    pub fn attach(&mut self, port: BridgePort) -> Result<Attached, Refusal> {
        self.attach_as(port, false)
    }

    /// The same; with `set_up`, also sets the host's end up after the programs are attached.
    ///
    /// # Errors
    /// [`Refusal`]; nothing stays behind.
    pub fn attach_as(&mut self, port: BridgePort, set_up: bool) -> Result<Attached, Refusal> {
        let (change, key) = (Change::begin("attach"), port.key.clone());
        let place = format!("{} on {}", port.host.name, port.bridge.name);
        let attached = self.attach_unlogged(port, set_up);
        match &attached {
            Ok(_) => change.made(&key, place),
            Err(refusal) => change.refused(&key, refusal),
        }
        attached
    }

    fn attach_unlogged(&mut self, mut port: BridgePort, set_up: bool) -> Result<Attached, Refusal> {
        let mac = admit::port(&port)?;
        let host = self.find(&port.host)?;
        let bridge = self.known_bridge(&port)?;
        if self.is_attached_already(&port)? {
            self.set_up(&port, &host, set_up)?;
            return Ok(self.programs_of(&port));
        }
        self.refuse_what_is_taken(&port, mac)?;
        self.refuse_taken_ports(&port)?;
        self.admit_bandwidth(&port)?;
        self.admit_uplink(&mut port)?;
        self.admit_gateway(&mut port)?;
        admit_leases(&mut port);
        self.store.write(&port)?;
        let built = limit_egress_beside(&port, || {
            self.build(&port, mac, &host, bridge)?;
            self.set_rules().map_err(Refusal::from)
        });
        let built = built.and_then(|()| self.set_up(&port, &host, set_up));
        if built.is_err() {
            // Without its programs the port must not forward.
            self.set_down_again(&host, set_up);
            if self.take_out(&port.key, "undone").is_none() {
                self.kernel.unlimit(&port, None);
            }
            self.store.remove(&port.key)?;
        }
        built?;
        self.tell_shadowed(&port);
        self.events.tell(EventKind::Attach, Some(&port.key), &port.host.name, String::new());
        Ok(self.programs_of(&port))
    }

    /// Sets a host's end up on request. If the container's end is up, waits until both are operational:
    /// packets that are sent earlier are lost.
    fn set_up(&mut self, port: &BridgePort, host: &Link, is_asked: bool) -> Result<(), Refusal> {
        match is_asked {
            true => Ok(self.kernel.set_up(host, port.peer_up)?),
            false => Ok(()),
        }
    }

    /// Sets a host's end down that a failed attach was to set up.
    fn set_down_again(&mut self, host: &Link, is_asked: bool) {
        if is_asked && let Err(error) = self.kernel.set_down(host) {
            tracing::warn!(link = host.name, %error, "the host's end could not be set down again");
        }
    }

    /// Resolves an interface by index and name.
    fn find(&mut self, interface: &Interface) -> Result<Link, Refusal> {
        self.kernel
            .link(interface.index)?
            .filter(|link| link.name == interface.name)
            .ok_or_else(|| Refusal::NoLink(interface.clone()))
    }

    /// Resolves a port's bridge. A registered bridge is kept up to date by link events.
    fn known_bridge(&mut self, port: &BridgePort) -> Result<Link, Refusal> {
        let known = self.registry.bridge(port.bridge.index).filter(|_| port.vlan.is_none());
        match known.filter(|known| known.link.name == port.bridge.name) {
            Some(known) => Ok(known.link.clone()),
            None => self.find(&port.bridge),
        }
    }

    /// Whether exactly this port is attached. An attachment whose link is gone is replaced.
    fn is_attached_already(&mut self, port: &BridgePort) -> Result<bool, Refusal> {
        let Some(known) = self.registry.get(&port.key).map(|attachment| attachment.port.clone()) else {
            return Ok(false);
        };
        match difference(&known, port) {
            None => Ok(true),
            Some(_) if self.is_gone(&known)? => {
                self.forget(&port.key, "its link is gone");
                Ok(false)
            }
            Some(differs) => Err(Refusal::Exists { key: port.key.clone(), differs }),
        }
    }

    /// Two attachments never share a host end, nor a MAC address on one bridge: an FDB entry has one port.
    fn refuse_what_is_taken(&mut self, port: &BridgePort, mac: Mac) -> Result<(), Refusal> {
        let station = self.kernel.station(&crate::kernel::station_key(port, mac))?;
        let what = match port.vlan {
            Some(vlan) if vlan.within => format!("VLAN {} on {}", vlan.id, port.bridge.name),
            _ => format!("{} on {}", port.mac, port.bridge.name),
        };
        if self.is_gateways_mac(port.bridge.index, mac) {
            return Err(Refusal::Gateway {
                name: port.bridge.name.clone(),
                why: format!("of a VLAN has {}", port.mac),
            });
        }
        let owners =
            [(station.map(|station| station.ifindex), what), (Some(port.host.index), port.host.name.clone())];
        for (owner, what) in owners {
            let owner = owner.and_then(|ifindex| self.registry.by_host(ifindex));
            let Some(owner) = owner.map(|attachment| attachment.port.clone()) else { continue };
            if !self.is_gone(&owner)? {
                return Err(Refusal::Taken { what, owner: owner.key });
            }
            self.forget(&owner.key, "its link is gone");
        }
        Ok(())
    }

    pub(super) fn is_gone(&mut self, port: &BridgePort) -> Result<bool, Refusal> {
        Ok(self.kernel.link(port.host.index)?.is_none_or(|link| link.name != port.host.name))
    }

    fn build(&mut self, port: &BridgePort, mac: Mac, host: &Link, bridge: Link) -> Result<(), Refusal> {
        self.kernel.limit_ingress(port)?;
        let slot = self.take_slot()?;
        let peer = PeerEnd::new(host.carrier, port.peer_up);
        let others = self.kernel.others(host.index)?;
        let (is_parent, lent) = self.parenthood(&port.host);
        let attachment =
            Attachment { port: port.clone(), mac, slot, peer, others, abandoned: false, is_parent, lent };
        self.registry.insert(attachment.clone());
        self.foreign_ports.remove(&host.index);
        self.ledger.allocate(&port.key, Demand::from(&port.bandwidth));
        if port.vlan.is_none() {
            self.build_bridge(bridge)?;
        }
        self.build_uplink(port)?;
        self.build_gateway(port)?;
        // A filter that was added has to be seen before this container sends; one that was removed may be
        // seen later.
        if attachment.is_masqueraded() && self.kernel.begins_masquerading {
            self.look_for_external_filters();
        }
        self.kernel.write_port(&attachment, Asks::Fast)?;
        self.build_trunk(&attachment)?;
        self.kernel.attach_all(&attachment.hooks())?;
        if !port.mappings.is_empty() {
            self.kernel.write_mappings(&attachment)?;
            self.update_nat_ingress();
            self.follow_mappings(&[], &port.mappings);
        }
        if attachment.is_masqueraded() && !self.has_masquerade_interfaces() {
            self.update_nat_ingress();
        }
        Ok(())
    }

    /// Registers an attachment's bridge and attaches its program, once.
    fn build_bridge(&mut self, link: Link) -> Result<(), Refusal> {
        if self.registry.bridge(link.index).is_some_and(|known| known.link.name == link.name) {
            return Ok(());
        }
        let slot = self.take_slot()?;
        let bridge = Bridge { link, slot };
        self.registry.insert_bridge(bridge.clone());
        self.kernel.write_bridge(&bridge)?;
        self.find_foreign_ports_on(bridge.link.index)?;
        self.kernel.attach(&bridge.hook())?;
        self.update_nat_ingress();
        Ok(())
    }

    /// Allocates a counter slot and clears it.
    pub(super) fn take_slot(&mut self) -> Result<u32, KernelError> {
        let slot = self.registry.slots.take().ok_or(KernelError::Full)?;
        let cleared = self.kernel.clear_slot(slot);
        cleared.map(|()| slot).inspect_err(|_| self.registry.slots.give_back(slot))
    }

    pub(super) fn programs_of(&self, port: &BridgePort) -> Attached {
        let bridge = self.registry.bridge(port.bridge.index).map(Bridge::hook);
        let trunk = Trunk::of(port).map(|trunk| trunk.hook());
        let hooks = self.registry.get(&port.key).map(Attachment::hooks).into_iter().flatten();
        let hooks = hooks.chain(bridge.filter(|_| port.vlan.is_none())).chain(trunk);
        Attached { programs: hooks.map(|hook| self.program_report(&hook)).collect() }
    }
}

/// Compares what identifies an attachment. The namespace's path, the peer's state, the bridge port's settings
/// and the lease directory do not count.
pub(super) fn difference(one: &BridgePort, other: &BridgePort) -> Option<&'static str> {
    let BridgePort {
        key: _,
        bridge,
        host,
        mac,
        ips,
        mtu,
        netns: _,
        peer_up: _,
        masquerade,
        restrictions,
        mappings,
        bandwidth,
        service: _,
        lease_dir: _,
        vlan,
    } = one;
    [
        (*host != other.host, "host interface"),
        (*bridge != other.bridge, "bridge"),
        (!mac.eq_ignore_ascii_case(&other.mac), "MAC address"),
        (*ips != other.ips, "list of addresses"),
        (*mtu != other.mtu, "MTU"),
        (*vlan != other.vlan, "VLAN"),
        (*masquerade != other.masquerade, "masquerade"),
        (*restrictions != other.restrictions, "set of restrictions"),
        (*mappings != other.mappings, "list of port mappings"),
        (*bandwidth != other.bandwidth, "bandwidth limit"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}
