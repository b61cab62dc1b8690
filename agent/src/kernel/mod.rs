//! An attachment's objects in the kernel: how they are created and removed.
//!
//! A port is an entry in `PORTS`, one in `FDB`, one in `ADDRESSES` per address, and two programs. Its bridge is an entry in `PORTS`, one in
//! `FDB` and one program. Entries are written before the programs that read them are attached, and removed after these are detached. Every
//! step is idempotent, so a crash is recovered by repeating it.

mod audit;
mod entries;
mod finding;
mod hooks;
mod learned;
mod limit;
mod links;
mod locals;
pub(crate) mod mappings;
mod masquerades;
mod members;
mod native;
mod pinned;
mod relocation;
mod sockets;
pub mod subnets;
mod uplinks;
mod vlan_gateways;

pub use entries::{Asks, station_key};
pub use finding::Finding;
pub use hooks::Way;
pub use limit::{LimitError, limit_egress_beside};
pub(crate) use links::delete_if_named;

use std::collections::HashMap;

use aya::maps::MapError;
use ipnet::IpNet;
use shunt_agent_api::ProgramMode;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::address::{Address, add_gateway, addresses};
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::fdb::{add_station, listen_to, station, stop_listening_to};
use shunt_netlink::link::{Link, Selector, add_bridge, set_alias, set_master, set_port_flags};
use shunt_netlink::{AddressFamily, Connection, NetlinkError, unless};

use crate::bpf::clsact::{self, ClsactError};
use crate::bpf::hook::{Hook, Program};
use crate::bpf::layout;
use crate::bpf::maps::Maps;
use crate::bpf::mount::{self, MountError};
use crate::bpf::object::{self, ObjectError};
use crate::bpf::pins::Pins;
use crate::bpf::sets::ProgramSets;
use crate::bpf::socket::SocketError;
use crate::bpf::tcx::TcxError;
use crate::bpf::versions::{self, Older, VersionError};
use crate::config::Config;
use crate::rcu::GracePeriods;
use crate::registry::Others;

/// Why the kernel's state cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// There is no BPF file system.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The directories for pins cannot be made.
    #[error("the pin directory below {path}: {source}")]
    Pins {
        /// The configured directory.
        path: std::path::PathBuf,
        /// The file system's word.
        source: std::io::Error,
    },
    /// Pins of another version cannot be taken over.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The programs cannot be loaded.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Netlink failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A veth was set up and did not become operational.
    #[error("{0} was set up and did not become operational, or its peer did not")]
    NotOperational(String),
    /// A map entry was refused.
    #[error("map {map}: {source}")]
    Map {
        /// The map.
        map: &'static str,
        /// aya's word.
        source: MapError,
    },
    /// A tcx link was refused.
    #[error("{hook}: {source}")]
    Tcx {
        /// Where.
        hook: Hook,
        /// What happened.
        source: TcxError,
    },
    /// XDP was refused.
    #[error("XDP on {ifname}: {source}")]
    Native {
        /// Which.
        ifname: String,
        /// What happened.
        source: TcxError,
    },
    /// A filter was refused.
    #[error("{hook}: {source}")]
    Clsact {
        /// Where.
        hook: Hook,
        /// What happened.
        source: ClsactError,
    },
    /// A program on sockets was refused.
    #[error("{program}: {source}")]
    Socket {
        /// The program.
        program: &'static str,
        /// What happened.
        source: SocketError,
    },
    /// A limit was refused.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A bridge has a port with a carrier but no carrier itself.
    #[error("bridge {0} stays without a carrier although one of its ports has one")]
    Asleep(String),
    /// A link that was just created does not exist.
    #[error("{0} does not exist any more")]
    Vanished(String),
    /// All counter slots are in use.
    #[error("the node has as many ports as this version serves")]
    Full,
}

/// Maps, programs and sockets, bound to the network namespace of the thread that opened them.
pub struct Kernel {
    /// The maps.
    pub maps: Maps,
    programs: ProgramSets,
    pins: Pins,
    /// Pins of older versions, until they are taken over.
    older: Vec<Older>,
    /// The kernel's ids of the maps, by their names.
    map_ids: Vec<(&'static str, u32)>,
    way: Way,
    /// How each program is attached.
    modes: HashMap<(Program, u32), ProgramMode>,
    /// Uplinks with XDP, and the program ids.
    natives: HashMap<u32, u32>,
    route: Connection,
    grace_periods: GracePeriods,
    /// Whether the programs begin masqueraded connections; established ones continue in any case.
    pub begins_masquerading: bool,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.grace_periods.end();
    }
}

impl Kernel {
    /// Mounts bpffs if it is missing, loads the programs and chooses the attach mode.
    ///
    /// # Errors
    /// [`KernelError`]; attached programs keep serving.
    pub fn open(config: &Config) -> Result<Self, KernelError> {
        let Config { bpffs, attach, max_flows, late_programs, grace_periods, .. } = config;
        mount::ensure(bpffs)?;
        let older = versions::older(bpffs)?;
        let pins = Pins::create(bpffs).map_err(|source| KernelError::Pins { path: bpffs.clone(), source })?;
        older.iter().try_for_each(|older| older.carry_maps(&pins))?;
        let (programs, maps) = object::load(&pins, *max_flows, *late_programs)?;
        let map_ids = layout::ids(&pins).map_err(ObjectError::from)?;
        let route = Connection::open()?;
        let grace_periods = GracePeriods::open(*grace_periods);
        let way = Way::find(*attach);
        let programs = ProgramSets::new(programs, pins.clone());
        Ok(Self {
            maps,
            programs,
            pins,
            older,
            map_ids,
            way,
            modes: HashMap::new(),
            natives: HashMap::new(),
            route,
            grace_periods,
            begins_masquerading: false,
        })
    }

    /// The switch for expedited grace periods.
    pub fn grace_periods(&self) -> &GracePeriods {
        &self.grace_periods
    }

    /// The older ABI versions with pins.
    pub fn older_versions(&self) -> Vec<u32> {
        self.older.iter().map(|older| older.abi).collect()
    }

    /// Takes over older agents' links; their programs serve until they are replaced.
    ///
    /// # Errors
    /// The file system's.
    pub fn carry_links(&mut self) -> Result<(), KernelError> {
        Ok(self.older.iter().try_for_each(|older| older.carry_links(&self.pins))?)
    }

    /// Removes the remaining pins of older agents. Failures are logged.
    pub fn remove_older(&mut self) {
        for older in std::mem::take(&mut self.older) {
            if let Err(error) = older.remove() {
                tracing::warn!(%error, "cannot remove the pins of an older agent");
            }
        }
    }

    /// The id of a hook's program; 0 if it is not loaded.
    pub fn program_id(&self, hook: &Hook) -> u32 {
        self.programs.id(hook.set, hook.program)
    }

    /// Where a map is pinned.
    pub fn map_pin(&self, name: &str) -> std::path::PathBuf {
        self.pins.map(name)
    }

    /// Lists external filters and qdiscs on an interface.
    ///
    /// # Errors
    /// Netlink's.
    pub fn others(&mut self, ifindex: u32) -> Result<Others, KernelError> {
        let (filters, egress) = clsact::others(&mut self.route, ifindex)?;
        let queued = self.link(ifindex)?.is_some_and(|link| link.queued);
        Ok(Others { filters, queue: egress || queued })
    }

    /// Enslaves a link to a bridge again, with its port flags and the container's FDB entry.
    ///
    /// # Errors
    /// Netlink's.
    pub fn enslave(
        &mut self,
        index: u32,
        bridge: u32,
        flags: PortFlags,
        container: Option<Mac>,
    ) -> Result<(), KernelError> {
        self.route.run(set_master(index, bridge))?;
        self.set_port_flags(index, flags, container)
    }

    /// Sets a port's flags and its container's static FDB entry: only stations with such an entry may send on
    /// a locked port.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_port_flags(
        &mut self,
        index: u32,
        flags: PortFlags,
        container: Option<Mac>,
    ) -> Result<(), KernelError> {
        if let Some(mac) = container {
            self.route.run(add_station(index, mac.octets()))?;
        }
        Ok(self.route.run(set_port_flags(index, flags.exact()))?)
    }

    /// Restores the static FDB entry of a port's container.
    ///
    /// # Errors
    /// Netlink's.
    pub fn add_station(&mut self, index: u32, mac: Mac) -> Result<(), KernelError> {
        Ok(self.route.run(add_station(index, mac.octets()))?)
    }

    /// Whether a bridge has a static FDB entry for the station on this port.
    ///
    /// # Errors
    /// Netlink's.
    pub fn has_station(&mut self, bridge: u32, index: u32, mac: Mac) -> Result<bool, KernelError> {
        let placement = self.route.get(station(bridge, mac.octets()))?;
        Ok(placement.is_some_and(|placement| placement.port == index && placement.sticky))
    }

    /// Adds a VLAN interface's MAC address to the master's unicast filter, as the kernel's VLAN devices do.
    ///
    /// # Errors
    /// Netlink's.
    pub fn add_filter_address(&mut self, master: u32, mac: Mac) -> Result<(), KernelError> {
        let told = self.route.run(listen_to(master, mac.octets()));
        Ok(unless(told, NetlinkError::is_existing)?)
    }

    /// Removes it again; the master may be gone.
    ///
    /// # Errors
    /// Netlink's.
    pub fn remove_filter_address(&mut self, master: u32, mac: Mac) -> Result<(), KernelError> {
        let told = self.route.run(stop_listening_to(master, mac.octets()));
        Ok(unless(told, NetlinkError::is_missing)?)
    }

    /// Recreates a bridge, unless a link of its name exists.
    ///
    /// # Errors
    /// Netlink's.
    pub fn make_bridge(&mut self, like: &Link) -> Result<(), KernelError> {
        match self.route.run(add_bridge(like)) {
            Err(error) if error.is_existing() => return Ok(()),
            other => other?,
        }
        let Some(alias) = &like.alias else { return Ok(()) };
        Ok(self.route.run(set_alias(Selector::Name(&like.name), alias))?)
    }

    /// The bridge of this name, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn bridge_named(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        Ok(self.link_named(name)?.filter(|found| found.kind.as_deref() == Some("bridge")))
    }

    /// The addresses of an interface, with their subnets.
    ///
    /// # Errors
    /// Netlink's.
    pub fn subnets(&mut self, index: u32) -> Result<Vec<IpNet>, KernelError> {
        let present = self.route.list(addresses(index, AddressFamily::Unspec))?;
        let present = present.into_iter().filter(|address| address.index == index && !address.is_of_link());
        Ok(present.map(|address: Address| address.prefix).collect())
    }

    /// Gives an interface an address.
    ///
    /// # Errors
    /// Netlink's.
    pub fn add_address(&mut self, index: u32, address: IpNet) -> Result<(), KernelError> {
        Ok(unless(self.route.run(add_gateway(index, address)), NetlinkError::is_existing)?)
    }
}

/// Adds the map's name to an error.
fn in_map(map: &'static str) -> impl FnOnce(MapError) -> KernelError {
    move |source| KernelError::Map { map, source }
}
