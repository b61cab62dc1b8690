//! What each container has of the kernel's flows (`KERNEL_SHARES`), and which are apart for want of room.

use shunt_dataplane::abi::{
    AFFINITY_APART, AFFINITY_LOOKUP, KernelShare, NO_SLOT, Port, STATION_APART, Station, StationKey,
};

use crate::datapath::maps::insert;
use crate::datapath::{Datapath, DatapathError, encode, in_map, room};
use crate::registry::Attachment;

impl Datapath {
    /// What the container with this counter slot has; of [`NO_SLOT`] what all have.
    ///
    /// # Errors
    /// The kernel's.
    pub fn kernel_share(&self, slot: u32) -> Result<KernelShare, DatapathError> {
        self.maps.kernel_shares.get(&slot, 0).map_err(in_map("KERNEL_SHARES"))
    }

    /// Writes the limits for so many containers.
    ///
    /// # Errors
    /// The kernel's.
    pub fn share_kernel_flows(&mut self, containers: usize) -> Result<(), DatapathError> {
        let known = self.kernel_share(NO_SLOT)?;
        let (most, least) = room::kernel_flows(containers);
        if (known.most, known.least) == (most, least) {
            return Ok(());
        }
        let share = KernelShare { most, least, ..known };
        self.maps.kernel_shares.set(NO_SLOT, share, 0).map_err(in_map("KERNEL_SHARES"))
    }

    /// Makes all of a container's flows the kernel's, or looks them up again. In VLANs nothing is the kernel's.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_apart(&mut self, attachment: &Attachment, is_apart: bool) -> Result<(), DatapathError> {
        let (port, station) = (encode::port_key(attachment.port.host.index), encode::station_key(attachment));
        if station.vid != 0 {
            self.write_port_apart(port.ifindex, AFFINITY_LOOKUP)
        } else if is_apart {
            self.write_port_apart(port.ifindex, AFFINITY_APART)?;
            self.write_station_apart(station, |flags| flags | STATION_APART)
        } else {
            self.write_station_apart(station, |flags| flags & !STATION_APART)?;
            self.write_port_apart(port.ifindex, AFFINITY_LOOKUP)
        }
    }

    fn write_port_apart(&mut self, ifindex: u32, affinity: u32) -> Result<(), DatapathError> {
        let Some(entry) = self.port(ifindex)? else { return Ok(()) };
        let entry = Port { affinity, ..entry };
        insert(&mut self.maps.ports, encode::port_key(ifindex), entry).map_err(in_map("PORTS"))
    }

    fn write_station_apart(
        &mut self,
        key: StationKey,
        flags: impl Fn(u32) -> u32,
    ) -> Result<(), DatapathError> {
        let Some(station) = self.station(&key)? else { return Ok(()) };
        let station = Station { flags: flags(station.flags), ..station };
        insert(&mut self.maps.stations, key, station).map_err(in_map("FDB"))
    }
}
