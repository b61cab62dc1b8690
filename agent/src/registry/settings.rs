//! What others have set on a container's port of the kernel's bridge.

use shunt_agent_api::BridgePort;
use shunt_netlink::bridge_vlan::PortVlans;
use shunt_netlink::link::Link;

use super::port_flags::port_flags;

/// What others have set on a container's port of the kernel's bridge, as far as the fast path has to heed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// It reaches no other isolated port.
    pub isolated: bool,
    /// Only stations that the bridge was told of may send by it.
    pub locked: bool,
    /// The bridge learns nothing from it.
    pub deaf: bool,
    /// What is for it goes to another port while it has no carrier.
    pub has_backup: bool,
    /// It does not forward: it is disabled though it is operational, or blocked.
    pub blocked: bool,
    /// Its place on a bridge that keeps VLANs apart.
    pub domain: Domain,
}

/// Whom the untagged frames of a port reach on a bridge that keeps VLANs apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Domain {
    /// The node, and every port of this kind: they are in one VLAN, or the bridge knows none.
    #[default]
    Nodes,
    /// Ports of another VLAN, in which the node is as well. Also a port of which it is not known yet.
    Other,
    /// Ports of a VLAN in which the node is not, or nobody.
    Cut,
}

impl Domain {
    /// The place of a port with these VLANs on a bridge that has those itself.
    pub fn of(port: &PortVlans, bridge: &PortVlans) -> Self {
        match port.pvid().filter(|vid| port.has(*vid)) {
            Some(vid) if !bridge.has(vid) => Self::Cut,
            Some(vid) if port.is_untagged(vid) && bridge.pvid() == Some(vid) && bridge.is_untagged(vid) => {
                Self::Nodes
            }
            Some(_) => Self::Other,
            None => Self::Cut,
        }
    }
}

impl Settings {
    /// Those of a container's port, without its VLANs. What the agent has asked for itself does not count. No frame of a port in VLANs
    /// of ours gets to the bridge: it would never learn from it, and knows nothing of its VLANs.
    pub fn of(port: &BridgePort, link: &Link) -> Self {
        let (told, ours) = (link.port_settings, port_flags(port));
        let is_bridged = port.restrictions.vlans.is_none();
        Self {
            isolated: link.port_flags.isolated && !ours.isolated,
            locked: told.locked && !ours.locked,
            deaf: told.deaf && is_bridged,
            has_backup: told.has_backup && is_bridged,
            blocked: link.is_shut(),
            domain: Domain::Nodes,
        }
    }

    /// Whether the kernel's bridge has to judge what the container sends.
    pub fn judges_sent(&self) -> bool {
        self.locked || self.blocked || self.domain != Domain::Nodes
    }

    /// Whether it has to judge what the container is sent.
    pub fn judges_received(&self) -> bool {
        self.has_backup || self.blocked || self.domain != Domain::Nodes
    }

    /// Whether nothing passes between the node and the container.
    pub fn is_cut_off(&self) -> bool {
        self.blocked || self.domain == Domain::Cut
    }

    /// Why the container's frames take the kernel's way, each reason as a clause.
    pub fn reasons(&self) -> Vec<String> {
        let vlan = match self.domain {
            Domain::Nodes => None,
            Domain::Other => Some("its bridge filters VLANs, and its PVID is not the bridge's own"),
            Domain::Cut => Some("its bridge filters VLANs, and the bridge itself is not in its PVID"),
        };
        let all = [
            self.locked.then_some("its bridge port is locked"),
            self.blocked.then_some("its bridge port does not forward"),
            self.has_backup.then_some("its bridge port has a backup port"),
            vlan,
        ];
        all.into_iter().flatten().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use shunt_netlink::Reply as _;
    use shunt_netlink::attribute::{attribute, nested};

    use super::*;

    const PVID: u16 = 2;
    const UNTAGGED: u16 = 4;

    /// VLANs as the kernel tells them: entries with information of flags and VLAN id.
    fn vlans(all: &[(u16, u16)]) -> PortVlans {
        let entry = |(vid, flags): &(u16, u16)| {
            nested(1, &attribute(1, &[flags.to_ne_bytes(), vid.to_ne_bytes()].concat()))
        };
        PortVlans::read(&[vec![0; 8], all.iter().flat_map(entry).collect()].concat()).unwrap()
    }

    #[test]
    fn ports_are_with_the_node_where_their_untagged_frames_are_in_its_vlan_both_ways() {
        let bridge = vlans(&[(1, PVID | UNTAGGED), (20, 0)]);
        for (port, expected) in [
            (&[(1, PVID | UNTAGGED)][..], Domain::Nodes),
            (&[(1, PVID | UNTAGGED), (30, 0)], Domain::Nodes),
            (&[(1, PVID)], Domain::Other),
            (&[(1, UNTAGGED), (20, PVID | UNTAGGED)], Domain::Other),
            (&[(1, UNTAGGED), (30, PVID | UNTAGGED)], Domain::Cut),
            (&[(1, UNTAGGED)], Domain::Cut),
            (&[], Domain::Cut),
        ] {
            assert_eq!(Domain::of(&vlans(port), &bridge), expected, "{port:?}");
        }
        assert_eq!(Domain::of(&vlans(&[(1, PVID | UNTAGGED)]), &vlans(&[])), Domain::Cut);
    }

    #[test]
    fn what_the_kernels_bridge_judges_is_said() {
        assert_eq!(Settings { isolated: true, deaf: true, ..Settings::default() }.reasons(), [""; 0]);
        for settings in [
            Settings { locked: true, ..Settings::default() },
            Settings { has_backup: true, ..Settings::default() },
            Settings { blocked: true, ..Settings::default() },
            Settings { domain: Domain::Cut, ..Settings::default() },
        ] {
            assert!(settings.judges_sent() || settings.judges_received(), "{settings:?}");
            assert_eq!(settings.reasons().len(), 1, "{settings:?}");
        }
    }
}
