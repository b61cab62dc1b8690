//! Ports, bridges, uplinks, VLAN gateways and foreign ports in `PORTS`; stations in `FDB`; addresses in `ADDRESSES`; VLANs in `TAGGED`.

use std::net::IpAddr;

use shunt_agent_api::{BridgePort, IngressPolicy, Restrictions, Vlans};
use shunt_dataplane::abi::vlan::{TaggedVlans, VID_ANY};
use shunt_dataplane::abi::{
    AFFINITY_FAST, AFFINITY_LOOKUP, AddressKey, NO_SLOT, PORT_ALONE, PORT_ANSWERS_NEIGHBORS, PORT_BLOCKED,
    PORT_DEFAULT_VLAN, PORT_FOREIGN, PORT_GUARDED, PORT_HEEDED, PORT_IP_CHECK, PORT_ISOLATED, PORT_MAC_CHECK,
    PORT_MAPPED, PORT_MASQUERADED, PORT_OPENED, PORT_PASSING, PORT_POLICED, PORT_SAME_BRIDGE, PORT_SHARED,
    PORT_STORM, PORT_SUBNETS, PORT_TRUSTED, PORT_WIRE, PORT_WITHIN, PORT_XDP, Port, PortKey, STATION_ALONE,
    STATION_APART, STATION_ASIDE, STATION_BLOCKED, STATION_HOST, STATION_ISOLATED, STATION_MOVED,
    STATION_OPENED, STATION_PEER_UP, STATION_QUEUED, STATION_SAME_BRIDGE, Station, StationKey,
};
use shunt_dataplane::wire::address::{Address, Mac};

use super::is_policed;
use crate::limits::subnets::Subnets;
use crate::registry::{Attachment, Bridge, Uplink, VlanGateway};

/// The VLANs that there are (IEEE 802.1Q).
const VIDS: std::ops::RangeInclusive<u16> = 1..=4094;

/// The bit where it holds.
const fn flag(holds: bool, bit: u32) -> u32 {
    if holds { bit } else { 0 }
}

/// The bits of an ingress policy: no packets through another bridge, or from no container.
const fn ingress_flags(policy: IngressPolicy, same_bridge: u32, alone: u32) -> u32 {
    match policy {
        IngressPolicy::Open => 0,
        IngressPolicy::SameBridge => same_bridge,
        IngressPolicy::Isolated => same_bridge | alone,
    }
}

/// The key of an interface's entries in `PORTS`, `TAGGED` and `UPLINKS`.
pub const fn port_key(ifindex: u32) -> PortKey {
    PortKey { ifindex }
}

/// An attachment's entry in `PORTS`; `affinity` says how its packets choose their path at least.
pub fn port(attachment: &Attachment, affinity: u32) -> Port {
    let port = &attachment.port;
    let Restrictions { isolated, mac_check, ip_check, trusted, ingress, storm, .. } = &port.restrictions;
    let settings = &attachment.settings;
    let is_bridged = port.restrictions.vlans.is_none();
    let flags = flag(attachment.external.filters || is_bridged && settings.judges_sent(), PORT_SHARED)
        | flag(is_bridged && settings.is_cut_off(), PORT_BLOCKED)
        | flag(*isolated || settings.isolated, PORT_ISOLATED)
        | flag(*mac_check, PORT_MAC_CHECK)
        | flag(*ip_check, PORT_IP_CHECK)
        | flag(*trusted, PORT_TRUSTED)
        | ingress_flags(*ingress, PORT_SAME_BRIDGE, PORT_ALONE)
        | flag(storm.is_some(), PORT_STORM)
        | flag(!port.mappings.is_empty(), PORT_MAPPED)
        | flag(answers_neighbors(port), PORT_ANSWERS_NEIGHBORS)
        | flag(attachment.is_masqueraded_by_programs(), PORT_MASQUERADED)
        | flag(attachment.heeded, PORT_HEEDED)
        | flag(attachment.carried, PORT_OPENED)
        | flag(attachment.is_guarded(), PORT_GUARDED)
        | flag(attachment.external.xdp, PORT_XDP)
        | flag(is_policed(port), PORT_POLICED)
        | flag(Subnets::of_sent(&port.bandwidth).is_some(), PORT_SUBNETS);
    let (vid, membership) = if is_out_of_service(attachment) { (0, 0) } else { untagged(port) };
    let flags = flags | membership;
    let looks_up = attachment.heeded || answers_neighbors(port);
    let affinity = if looks_up { affinity.max(AFFINITY_LOOKUP) } else { affinity };
    Port { bridge: port.bridge.index, slot: attachment.slot, affinity, flags, vid, mac: attachment.mac }
}

/// Whether a client of the container's host ports may be a neighbour that it sees, and answers without the node: where sources are kept, and
/// where the container is in several subnets, of which the others' neighbours are no clients of its own.
fn answers_neighbors(port: &BridgePort) -> bool {
    let of_family = |is: fn(&IpAddr) -> bool| port.ips.iter().filter(|ip| is(ip)).count();
    let is_in_several = of_family(IpAddr::is_ipv4) > 1 || of_family(IpAddr::is_ipv6) > 1;
    port.mappings.iter().any(|mapping| mapping.keeps_source) || !port.mappings.is_empty() && is_in_several
}

/// Whether a port in VLANs is in none of them, as it does not forward: the kernel's bridge does not see its frames.
fn is_out_of_service(attachment: &Attachment) -> bool {
    attachment.port.restrictions.vlans.is_some() && attachment.settings.blocked
}

/// The PVID and the VLAN flags of a port's entry in `PORTS`.
fn untagged(port: &BridgePort) -> (u16, u32) {
    match (port.vlan, &port.restrictions.vlans) {
        (Some(vlan), _) => (vlan.id, flag(vlan.within, PORT_WITHIN)),
        (None, Some(Vlans { untagged, default, .. })) => {
            (untagged.unwrap_or_default(), flag(*default, PORT_DEFAULT_VLAN))
        }
        (None, None) => (0, 0),
    }
}

/// The key of an attachment's station.
pub fn station_key(attachment: &Attachment) -> StationKey {
    station_key_of(&attachment.port, attachment.mac)
}

/// The key of a port's station.
pub fn station_key_of(port: &BridgePort, mac: Mac) -> StationKey {
    let (vid, mac) = match port.vlan {
        // The one interface of its VLAN there.
        Some(vlan) if vlan.within => (vlan.id, Mac::default()),
        Some(vlan) => (vlan.id, mac),
        None => (port.restrictions.vlans.as_ref().map_or(0, only_vlan), mac),
    };
    StationKey { bridge: port.bridge.index, vid, mac }
}

/// The VLAN of a port that is in one only, else [`VID_ANY`].
fn only_vlan(vlans: &Vlans) -> u16 {
    vlans.untagged.filter(|_| vlans.tagged.is_empty() && !vlans.default).unwrap_or(VID_ANY)
}

/// Whether packets have to come through the host's end.
const fn is_entered_by_port(attachment: &Attachment) -> bool {
    attachment.external.queue || attachment.external.xdp || attachment.is_parent
}

/// An attachment's container in `FDB`.
pub fn station(attachment: &Attachment) -> Station {
    let (port, settings) = (&attachment.port, &attachment.settings);
    let is_bridged = port.restrictions.vlans.is_none();
    Station {
        ifindex: port.host.index,
        slot: attachment.slot,
        mtu: port.mtu,
        flags: flag(attachment.peer.is_up(), STATION_PEER_UP)
            | flag(is_entered_by_port(attachment), STATION_QUEUED)
            | flag(port.restrictions.isolated || settings.isolated, STATION_ISOLATED)
            | flag(is_bridged && settings.judges_received(), STATION_ASIDE)
            | flag(is_bridged && settings.is_cut_off(), STATION_BLOCKED)
            | flag(attachment.opened || attachment.carried, STATION_OPENED)
            | ingress_flags(port.restrictions.ingress, STATION_SAME_BRIDGE, STATION_ALONE),
    }
}

/// An interface's entry as it was given, but for [`Port::affinity`].
pub const fn as_written(port: Port) -> Port {
    Port { flags: port.flags & !PORT_PASSING, ..port }
}

/// A station as the agent has written it.
pub const fn in_place(station: Station) -> Station {
    Station { flags: station.flags & !(STATION_MOVED | STATION_APART), ..station }
}

/// An attachment's addresses in `ADDRESSES`. For a port without untagged frames the VLAN of its addresses is
/// unknown and only used by its source guard.
pub fn addresses(attachment: &Attachment) -> impl Iterator<Item = &IpAddr> {
    let Restrictions { vlans, ip_check, .. } = &attachment.port.restrictions;
    let is_placed = vlans.as_ref().is_none_or(|vlans| vlans.untagged.is_some());
    let is_asked_for = attachment.port.vlan.is_none() && (is_placed || *ip_check);
    let ips = if is_asked_for { &attachment.port.ips[..] } else { &[] };
    let lent = if *ip_check { &attachment.lent[..] } else { &[] };
    ips.iter().chain(lent)
}

/// The keys of [`addresses`].
pub fn address_keys(attachment: &Attachment) -> impl Iterator<Item = AddressKey> {
    let (bridge, vid) = (attachment.port.bridge.index, untagged(&attachment.port).0);
    addresses(attachment).map(move |ip| AddressKey::new(bridge, vid, Address::from(*ip)))
}

/// The VLANs that a port carries with their tags; none of a port without VLANs.
pub fn tagged_vlans(attachment: &Attachment) -> Option<TaggedVlans> {
    let vlans = attachment.port.restrictions.vlans.as_ref()?;
    Some(TaggedVlans::of(if is_out_of_service(attachment) { &[] } else { &vlans.tagged }))
}

/// A bridge's entry in `PORTS`.
pub fn bridge_port(bridge: &Bridge) -> Port {
    let mac = bridge.link.mac.map(Mac::new).unwrap_or_default();
    let flags = flag(bridge.heeded, PORT_HEEDED);
    Port { bridge: bridge.link.index, slot: bridge.slot, affinity: AFFINITY_FAST, flags, vid: 0, mac }
}

/// The key of the node on a bridge; none without a MAC address.
pub fn bridge_station_key(bridge: &Bridge) -> Option<StationKey> {
    Some(StationKey { bridge: bridge.link.index, vid: 0, mac: Mac::new(bridge.link.mac?) })
}

/// The node on a bridge, in `FDB`.
pub fn bridge_station(bridge: &Bridge) -> Station {
    Station { ifindex: bridge.link.index, slot: bridge.slot, mtu: bridge.link.mtu, flags: STATION_HOST }
}

/// An uplink's entry in `PORTS`. Untagged frames belong to no VLAN and take the kernel's bridge.
pub fn uplink_port(uplink: &Uplink) -> Port {
    let flags = PORT_WIRE | flag(uplink.blocked, PORT_BLOCKED) | flag(uplink.mapped, PORT_MAPPED);
    Port {
        bridge: uplink.bridge.index,
        slot: uplink.slot,
        affinity: AFFINITY_FAST,
        flags,
        vid: 0,
        mac: uplink.mac,
    }
}

/// An uplink carries every VLAN, with its tag.
pub fn every_vlan() -> TaggedVlans {
    TaggedVlans::of(&VIDS.collect::<Vec<_>>())
}

/// The entry in `PORTS` of a VLAN gateway's end with the addresses: like a bridge's, it marks packets from
/// containers.
pub fn gateway_node(gateway: &VlanGateway) -> Port {
    let (bridge, mac) = (gateway.link.index, gateway.port.mac);
    Port { bridge, slot: NO_SLOT, affinity: AFFINITY_FAST, flags: 0, vid: 0, mac }
}

/// A foreign port's entry in `PORTS`, and whether it leads out of the node.
pub fn foreign_port(bridge: u32, leads_out: bool) -> Port {
    Port { bridge, flags: PORT_FOREIGN | flag(leads_out, PORT_WIRE), ..Port::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uplink_carries_every_vlan_that_there_is() {
        let tagged = every_vlan();
        assert!(VIDS.into_iter().all(|vid| tagged.has(vid)));
        assert!(!tagged.has(0) && !tagged.has(4095));
    }
}
