//! Attaches a port: state file, map entries, programs. A failed attach leaves nothing.

use shunt_agent_api::{Attached, BridgePort, EventKind, Interface};
use shunt_netlink::link::Link;

use crate::datapath::programs;
use crate::kernel::limit_egress_beside;
use crate::registry::Trunk;
use crate::requests::admission;
use crate::resources::change::Change;
use crate::resources::lease::admit_leases;
use crate::resources::{Node, Refusal};

impl Node {
    /// Attaches programs and map entries to a port. Repeating a request changes nothing.
    ///
    /// # Errors
    /// [`Refusal`]; nothing stays behind.
    pub(crate) fn attach(&mut self, port: BridgePort) -> Result<Attached, Refusal> {
        self.attach_as(port, false)
    }

    /// The same; with `set_up`, also sets the host's end up after the programs are attached.
    ///
    /// # Errors
    /// [`Refusal`]; nothing stays behind.
    pub(crate) fn attach_as(&mut self, port: BridgePort, set_up: bool) -> Result<Attached, Refusal> {
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
        let mac = admission::port(&port)?;
        let host = self.find(&port.host)?;
        let bridge = self.known_bridge(&port)?;
        self.forget_the_gone(&port, mac)?;
        if self.is_attached_already(&port)? {
            self.set_up(&port, &host, set_up)?;
            return Ok(self.programs_of(&port));
        }
        self.refuse_what_is_taken(&port, mac)?;
        self.refuse_what_is_occupied(&port, mac)?;
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

    /// Whether exactly this port is attached.
    fn is_attached_already(&self, port: &BridgePort) -> Result<bool, Refusal> {
        let Some(known) = self.registry.get(&port.key).map(|attachment| &attachment.port) else {
            return Ok(false);
        };
        match difference(known, port) {
            None => Ok(true),
            Some(differs) => Err(Refusal::Exists { key: port.key.clone(), differs }),
        }
    }

    pub(crate) fn programs_of(&self, port: &BridgePort) -> Attached {
        let bridge = self.registry.bridge(port.bridge.index).map(programs::of_bridge);
        let trunk = Trunk::of(port).map(|trunk| programs::of_trunk(&trunk));
        let hooks = self.registry.get(&port.key).map(programs::of_port).into_iter().flatten();
        let hooks = hooks.chain(bridge.filter(|_| port.vlan.is_none())).chain(trunk);
        Attached { programs: hooks.map(|hook| self.program_report(&hook)).collect() }
    }
}

/// Compares what identifies an attachment. The namespace's path, the peer's state, the bridge port's settings
/// and the lease directory do not count.
pub(crate) fn difference(one: &BridgePort, other: &BridgePort) -> Option<&'static str> {
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
