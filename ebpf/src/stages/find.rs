//! find: the station that a frame is for, by (L2 domain, VLAN, MAC address).

use crate::Tables;
use crate::abi::translation::{Mapping, TupleKey};
use crate::abi::vlan::VID_ANY;
use crate::abi::{AddressKey, Port, PortKey, STATION_HOST, STATION_MOVED, Station, StationKey};
use crate::stages::{learn, retag};
use crate::verdict::{PassReason, Stop};
use crate::wire::Frame;
use crate::wire::address::{Address, Macs};

/// The container of a host port, and the Ethernet addresses of a frame for it: routed traffic comes from the bridge.
///
/// # Errors
/// Passes what cannot be delivered now.
#[inline(always)]
pub fn mapped<T: Tables>(mapping: &Mapping, tables: &T) -> Result<(Station, Macs), Stop> {
    let key = StationKey { bridge: mapping.bridge, vid: mapping.vid, mac: mapping.mac };
    let station = tables.station(&key).ok_or(Stop::Pass(PassReason::UnknownStation))?;
    let bridge = tables.port(&PortKey { ifindex: mapping.bridge }).ok_or(Stop::Pass(PassReason::NoPort))?;
    Ok((station, Macs { destination: mapping.mac, source: bridge.mac }))
}

/// Marks the station of a host port's container as moved where another MAC address, or another port, has the container's `address` by now.
#[inline(always)]
pub fn heed_moves<T: Tables>(mapping: &Mapping, address: Address, station: &mut Station, tables: &T) {
    let owner = tables.owner(&AddressKey::new(mapping.bridge, mapping.vid, address));
    if owner.is_some_and(|owner| owner.ifindex != station.ifindex) {
        station.flags |= STATION_MOVED;
    }
}

/// The container of a masqueraded connection, and the Ethernet addresses of a frame for it.
///
/// # Errors
/// Passes what is for a container that is gone, or whose address another container has.
#[inline(always)]
pub fn holder<T: Tables>(becomes: &TupleKey, holder: u32, tables: &T) -> Result<(Station, Macs), Stop> {
    let (station, macs) = resident(becomes, tables)?;
    if station.ifindex != holder {
        return Err(Stop::Pass(PassReason::UnknownStation));
    }
    Ok((station, macs))
}

/// The container that a tuple is for, by its address, and the Ethernet addresses of a frame for it.
///
/// # Errors
/// Passes what is for nobody.
#[inline(always)]
pub fn resident<T: Tables>(becomes: &TupleKey, tables: &T) -> Result<(Station, Macs), Stop> {
    let key = AddressKey::new(becomes.domain, 0, becomes.destination);
    let (port, station) = tables.resident(&key, 0).ok_or(Stop::Pass(PassReason::UnknownStation))?;
    let bridge = tables.port(&PortKey { ifindex: becomes.domain }).ok_or(Stop::Pass(PassReason::NoPort))?;
    Ok((station, Macs { destination: port.mac, source: bridge.mac }))
}

/// The station with an address in a VLAN: the one whose only VLAN it is, then one that has a place in each of its VLANs, of which this is
/// one, then one that was heard there beyond an uplink.
#[inline(always)]
pub fn in_vlan<T: Tables>(key: StationKey, tables: &T) -> Option<Station> {
    if let Some(station) = tables.station(&key).and_then(in_place) {
        return Some(station);
    }
    let of_several = tables.station(&StationKey { vid: VID_ANY, ..key }).and_then(in_place);
    match of_several {
        Some(station) if is_in_vlan(key.vid, &station, tables) => of_several,
        _ => learn::beyond(&key, tables).or(of_several),
    }
}

/// Whether a station's port is in a VLAN.
#[inline(always)]
pub fn is_in_vlan<T: Tables>(vid: u16, station: &Station, tables: &T) -> bool {
    let port = tables.port(&PortKey { ifindex: station.ifindex });
    port.is_some_and(|port| retag::form_at(vid, &port, station.ifindex, tables).is_some())
}

/// The station, unless it has moved.
#[inline(always)]
fn in_place(station: Station) -> Option<Station> {
    (station.flags & STATION_MOVED == 0).then_some(station)
}

/// The station that a frame from `here` is for.
///
/// # Errors
/// Passes what the kernel's bridge handles: tagged frames, groups, unknown stations, the node itself, and a frame back to
/// its sender's port.
#[inline(always)]
pub fn station<T: Tables>(frame: &Frame, port: &Port, here: u32, tables: &T) -> Result<Station, Stop> {
    if frame.is_tagged() {
        return Err(Stop::Pass(PassReason::Tagged));
    }
    if frame.destination.is_group() {
        return Err(Stop::Pass(PassReason::Group));
    }
    let key = StationKey { bridge: port.bridge, vid: port.vid, mac: frame.destination };
    let station = match tables.station(&key) {
        Some(station) => station,
        None => learn::beyond(&key, tables).ok_or(Stop::Pass(PassReason::UnknownStation))?,
    };
    // One test for both, so that it costs nothing where neither is.
    if station.flags & (STATION_HOST | STATION_MOVED) != 0 {
        let is_host = station.flags & STATION_HOST != 0;
        return Err(Stop::Pass(if is_host { PassReason::ToHost } else { PassReason::UnknownStation }));
    }
    if station.ifindex == here {
        return Err(Stop::Pass(PassReason::Hairpin));
    }
    Ok(station)
}
