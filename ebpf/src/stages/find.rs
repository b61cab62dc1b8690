//! find: where does a frame go? Asks the FDB by (L2 domain, VLAN, MAC).

use crate::Tables;
use crate::abi::translation::{Mapping, TupleKey};
use crate::abi::{AddressKey, Port, PortKey, STATION_HOST, Station, StationKey};
use crate::nat::rewrite::Macs;
use crate::stages::learn;
use crate::verdict::{PassReason, Stop};
use crate::wire::Frame;

/// The container that a mapping leads to, and how a frame gets to it: from the bridge, as everything that is routed.
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

/// The container that has a masqueraded connection, and how a frame gets to it: from the bridge, as everything that is routed.
///
/// # Errors
/// Passes what is for one that is gone, or has another's address by now.
#[inline(always)]
pub fn holder<T: Tables>(becomes: &TupleKey, holder: u32, tables: &T) -> Result<(Station, Macs), Stop> {
    let key = AddressKey::new(becomes.domain, 0, becomes.destination);
    let (port, station) = tables.resident(&key, 0).ok_or(Stop::Pass(PassReason::UnknownStation))?;
    if station.ifindex != holder {
        return Err(Stop::Pass(PassReason::UnknownStation));
    }
    let bridge = tables.port(&PortKey { ifindex: becomes.domain }).ok_or(Stop::Pass(PassReason::NoPort))?;
    Ok((station, Macs { destination: port.mac, source: bridge.mac }))
}

/// The station that a frame from `here` is for.
///
/// # Errors
/// Passes what the kernel's bridge knows better: tags (its VLANs are not ours yet), groups, stations that we do not
/// know, the node itself, and a frame to whoever sent it.
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
    if station.flags & STATION_HOST != 0 {
        return Err(Stop::Pass(PassReason::ToHost));
    }
    if station.ifindex == here {
        return Err(Stop::Pass(PassReason::Hairpin));
    }
    Ok(station)
}
