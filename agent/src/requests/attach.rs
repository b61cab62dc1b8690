//! Attaches a port: state file, map entries, programs. A failed attach leaves nothing.

use shunt_agent_api::{Attached, BridgePort, Interface};
use shunt_netlink::link::Link;

use crate::datapath::programs;
use crate::registry::Trunk;
use crate::resources::change::Change;
use crate::resources::port::difference;
use crate::resources::validation;
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

    fn attach_unlogged(&mut self, port: BridgePort, set_up: bool) -> Result<Attached, Refusal> {
        let mac = validation::port(&port)?;
        let host = self.find(&port.host)?;
        let bridge = self.known_bridge(&port)?;
        self.forget_the_gone(&port, mac)?;
        let port = self.claimed(port)?;
        validation::port(&port)?;
        let sizes = self.packet_sizes(&port, &host)?;
        if self.is_attached_already(&port)? {
            self.set_up(&port, &host, set_up)?;
            let packets = self.enlarge(&port, &host, sizes);
            return Ok(Attached { packets, ..self.programs_of(&port) });
        }
        self.warn_of_missing_pod(&port);
        self.establish(port.clone(), mac, (&host, bridge), set_up)?;
        let packets = self.enlarge(&port, &host, sizes);
        self.log_bypassed(&port);
        self.tell_claimed(&port);
        Ok(Attached { packets, ..self.programs_of(&port) })
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
        Attached { programs: hooks.map(|hook| self.program_report(&hook)).collect(), packets: None }
    }
}
