//! Makes a port that an attachment asks for, and all that it needs.

use shunt_agent_api::{BridgePort, EventKind};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use crate::capacity::Demand;
use crate::kernel::limit_egress_beside;
use crate::registry::{Attachment, PeerEnd};
use crate::resources::lease::drop_relative_lease_dir;
use crate::resources::node::Entries;
use crate::resources::reconcile::{Cause, Resource as _};
use crate::resources::{Node, Refusal};

impl Node {
    /// Whether a port's host end is gone.
    ///
    /// # Errors
    /// Netlink's.
    pub(crate) fn is_gone(&mut self, port: &BridgePort) -> Result<bool, Refusal> {
        Ok(self.kernel.link(port.host.index)?.is_none_or(|link| link.name != port.host.name))
    }

    /// Validates a new port, as far as others have left room, writes it down, and makes it and all that it needs. With `set_up` also sets
    /// its host end up. Requests and repairs come here alike.
    ///
    /// # Errors
    /// [`Refusal`]; nothing stays behind.
    pub(crate) fn establish(
        &mut self,
        mut port: BridgePort,
        mac: Mac,
        (host, bridge): (&Link, Link),
        set_up: bool,
    ) -> Result<(), Refusal> {
        self.refuse_what_is_taken(&port, mac)?;
        self.refuse_what_is_occupied(&port, mac)?;
        self.refuse_taken_ports(&port)?;
        self.admit_bandwidth(&port)?;
        self.validate_uplink(&mut port)?;
        self.refuse_unnamed_trunk(&port, &bridge)?;
        self.validate_gateway(&mut port)?;
        drop_relative_lease_dir(&mut port);
        self.store.write(&port)?;
        let was_guarded = self.unattached.contains_key(&host.index);
        let built = limit_egress_beside(&port, || {
            self.build(&port, mac, host, bridge)?;
            self.set_rules()?;
            let attached = self.registry.get(&port.key).cloned();
            self.forget_connections(None, attached.as_ref());
            Ok(())
        });
        let built = built.and_then(|()| self.set_up(&port, host, set_up));
        if built.is_err() {
            // Without its programs the port must not forward.
            self.set_down_again(host, set_up);
            if was_guarded {
                self.leave_guarded(&port.key);
            }
            if self.take_out(&port.key, "undone").is_none() {
                self.kernel.unlimit(&port, None);
            }
            if !self.is_unfinished(&port.key) {
                self.store.remove(&port.key)?;
            }
        }
        built?;
        self.tell_shadowed(&port);
        self.events.tell_of(EventKind::Attach, &port, String::new());
        Ok(())
    }

    /// Sets a host's end up on request. If the container's end is up, waits until both are operational:
    /// packets that are sent earlier are lost.
    pub(crate) fn set_up(&mut self, port: &BridgePort, host: &Link, is_asked: bool) -> Result<(), Refusal> {
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

    /// Registers a new port, and makes it and all that it needs.
    fn build(&mut self, port: &BridgePort, mac: Mac, host: &Link, bridge: Link) -> Result<(), Refusal> {
        self.kernel.limit_ingress(port)?;
        // A filter that was added has to be seen before this container sends; one that was removed may be
        // seen later.
        if !port.masquerade.is_empty() && self.datapath.begins_masquerading {
            self.look_for_external_filters();
        }
        self.heed_before(port);
        let slot = self.take_slot()?;
        let peer = PeerEnd::new(host.carrier, port.peer_up);
        let external = self.kernel.external(host.index)?;
        let settings = self.settings_of(port, host, Some(&bridge))?;
        let (is_parent, lent) = self.parenthood(&port.host);
        let attachment = Attachment {
            external,
            settings,
            is_parent,
            by_programs: self.masquerade.by_programs,
            heeded: self.heeds(port),
            opened: self.heeds_host_ports(port),
            carried: self.carries(port),
            lent,
            ..Attachment::new(port.clone(), mac, slot, peer)
        };
        self.registry.insert(attachment.clone());
        let was_guarded = self.hand_over_unattached(host.index, port.bridge.index);
        self.foreign_ports.remove(&host.index);
        self.ledger.allocate(&port.key, Demand::from(&port.bandwidth));
        if port.vlan.is_none() {
            self.build_bridge(bridge)?;
        }
        self.build_uplink(port)?;
        self.build_gateway(port)?;
        // Programs that are there stay in force while they are replaced one by one.
        let none = Entries::new();
        attachment.apply(self, if was_guarded { Cause::Start(&none) } else { Cause::New })?;
        if was_guarded {
            self.detach_unwanted(&attachment)?;
        }
        self.build_trunk(&attachment)?;
        if !port.mappings.is_empty() {
            self.update_nat_ingress();
            self.follow_mappings(&[], &port.mappings);
        }
        if attachment.is_masqueraded_by_programs() && !self.has_masquerade_interfaces() {
            self.update_nat_ingress();
        }
        Ok(())
    }
}
