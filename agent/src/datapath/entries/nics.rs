//! XDP on uplinks, and the driver combinations that forward to each other.

use aya::maps::MapError;
use aya::maps::xdp::XdpMapError;

use crate::datapath::attach::{tcx, xdp};
use crate::datapath::{Datapath, DatapathError, in_map};
use crate::failpoints::{self, Failpoint};
use crate::registry::Uplink;

const MAP: &str = "NICS";

impl Datapath {
    /// Attaches XDP to an uplink, and makes it a target of the other uplinks.
    ///
    /// # Errors
    /// The driver's or the kernel's.
    pub fn attach_native(&mut self, uplink: &Uplink) -> Result<(), DatapathError> {
        let index = uplink.link.index;
        let pin = self.pins.nic(index);
        let (program, id) = self.programs.native()?;
        let attached = xdp::attach(program, index, &pin);
        attached.map_err(|source| DatapathError::Native { ifname: uplink.link.name.clone(), source })?;
        self.natives.insert(index, id);
        failpoints::pass(Failpoint::Bpf).map_err(|error| in_map(MAP)(MapError::from(error)))?;
        self.maps.nics.insert(index, index, None, 0).map_err(|error| in_map(MAP)(plain(error)))
    }

    /// Reverts that; there may be nothing to revert.
    ///
    /// # Errors
    /// The kernel's or the file system's.
    pub fn detach_native(&mut self, index: u32) -> Result<(), DatapathError> {
        let pin = self.pins.nic(index);
        if self.natives.remove(&index).is_none() && !pin.exists() {
            return Ok(());
        }
        failpoints::pass(Failpoint::Bpf).map_err(|error| in_map(MAP)(MapError::from(error)))?;
        match self.maps.nics.remove(index) {
            // The kernel removes the entry with its interface.
            Err(MapError::KeyNotFound | MapError::ElementNotFound) | Ok(()) => {}
            Err(MapError::SyscallError(error)) if is_absent(&error.io_error) => {}
            Err(error) => return Err(in_map(MAP)(error)),
        }
        tcx::detach(&pin)
            .map_err(|source| DatapathError::Native { ifname: format!("ifindex {index}"), source })
    }

    /// The id of an uplink's XDP program, if it has one.
    pub fn native(&self, uplink: &Uplink) -> Option<u32> {
        self.natives.get(&uplink.link.index).copied()
    }

    /// Whether the driver of an uplink with XDP runs the program, and whether other uplinks forward to it.
    pub fn is_native_in_force(&self, uplink: &Uplink) -> (bool, bool) {
        let index = uplink.link.index;
        let runs = xdp::attached(&self.pins.nic(index)) == self.native(uplink);
        (runs, self.maps.nics.get(index, 0).is_ok())
    }

    /// Detaches XDP from all other interfaces.
    ///
    /// # Errors
    /// The kernel's or the file system's.
    pub fn sweep_natives(&mut self, is_uplink: impl Fn(u32) -> bool) -> Result<(), DatapathError> {
        let root = self.pins.root().to_path_buf();
        let pinned = self.pins.nics().map_err(|source| DatapathError::Pins { path: root, source })?;
        pinned.into_iter().filter(|index| !is_uplink(*index)).try_for_each(|index| self.detach_native(index))
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

fn plain(error: XdpMapError) -> MapError {
    match error {
        XdpMapError::MapError(error) => error,
        XdpMapError::ChainedProgramNotSupported => MapError::from(std::io::Error::other(error)),
    }
}
