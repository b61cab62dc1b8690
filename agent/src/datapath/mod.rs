//! Programs, maps, pins and hooks: what touches BPF.
//!
//! Everything survives the agent: maps and tcx links are pinned, clsact filters have a fixed preference and handle. The next agent takes
//! them over without losing a packet.

pub mod attach;
pub mod decisions;
pub mod encode;
mod entries;
mod error;
mod exclusive;
pub mod layout;
pub mod loader;
pub mod maps;
pub mod mount;
pub mod pins;
pub mod probe;
pub mod program_sets;
pub mod programs;
mod repin;
pub mod room;
pub mod upgrade;
pub mod watching;

use std::collections::HashMap;
use std::path::PathBuf;

use aya::maps::MapInfo;
use shunt_dataplane::abi::share::Share;
use shunt_netlink::Connection;

pub use self::entries::{FlowAffinity, HeedingEntry, OutletEntries, SourceEntries};
pub use self::error::DatapathError;
pub(crate) use self::error::in_map;

use self::attach::hook::{Hook, Program};
use self::attach::{Attached, Way};
use self::exclusive::Exclusive;
use self::loader::ObjectError;
use self::maps::Maps;
use self::pins::Pins;
use self::program_sets::ProgramSets;
use self::upgrade::versions::{self, Older};
use crate::config::{Announcements, Config};
use crate::owned;
use crate::rcu::GracePeriods;

/// Maps and programs, bound to the network namespace of the thread that opened them.
pub struct Datapath {
    /// The maps.
    pub maps: Maps,
    programs: ProgramSets,
    pins: Pins,
    /// Pins of older versions, until they are taken over.
    older: Vec<Older>,
    /// The kernel's ids of the maps, by their names.
    map_ids: Vec<(&'static str, u32)>,
    way: Way,
    /// What is attached, and how.
    attached: HashMap<(Program, u32), Attached>,
    /// Uplinks with XDP, and the program ids.
    natives: HashMap<u32, u32>,
    /// For filters of clsact.
    route: Connection,
    grace_periods: GracePeriods,
    _exclusive: Exclusive,
    /// What each container may have of the tables of connections.
    share: Share,
    /// How many connections there is room for.
    connections: u32,
    /// Whether the programs begin masqueraded connections; established ones continue in any case.
    pub begins_masquerading: bool,
    /// Whether the programs may suppress frames to groups that nobody needs.
    pub spares: bool,
}

impl Datapath {
    /// Mounts bpffs if it is missing, loads the programs and chooses the attach mode.
    ///
    /// # Errors
    /// [`DatapathError`]; attached programs keep serving.
    pub fn open(config: &Config, grace_periods: GracePeriods) -> Result<Self, DatapathError> {
        let Config { bpffs, attach, max_flows, max_flows_per_container, late_programs, .. } = config;
        mount::ensure(bpffs)?;
        let older = versions::older(bpffs)?;
        let pins =
            Pins::create(bpffs).map_err(|source| DatapathError::Pins { path: bpffs.clone(), source })?;
        let exclusive = Exclusive::take(bpffs)?;
        // Of an agent that was killed while somebody watched; its programs are replaced as they are taken over.
        if let Err(error) = pins.remove_watch() {
            tracing::warn!(%error, "cannot remove the pins of watched programs' maps: nobody can watch until they are gone");
        }
        older.iter().try_for_each(|older| older.carry_maps(&pins))?;
        let (programs, mut maps) = loader::load(&pins, *max_flows, *late_programs)?;
        maps.marks.set(0, config.mark_mask.marks(), 0).map_err(in_map("MARKS"))?;
        let map_ids = layout::ids(&pins).map_err(ObjectError::from)?;
        copy_flows(&older, &mut maps);
        let room = flow_room(&pins, *max_flows)?;
        let share = room::share(room, *max_flows_per_container);
        Ok(Self {
            maps,
            programs: ProgramSets::new(programs, pins.clone()),
            pins,
            older,
            map_ids,
            way: Way::find(*attach),
            attached: HashMap::new(),
            natives: HashMap::new(),
            route: Connection::open()?,
            grace_periods,
            _exclusive: exclusive,
            share,
            connections: room[0].min(room[1]) / 2,
            begins_masquerading: false,
            spares: config.announcements == Announcements::Suppress,
        })
    }

    /// The older ABI versions with pins.
    pub fn older_versions(&self) -> Vec<u32> {
        self.older.iter().map(|older| older.abi).collect()
    }

    /// Takes over older agents' links; their programs serve until they are replaced.
    ///
    /// # Errors
    /// The file system's.
    pub fn carry_links(&mut self) -> Result<(), DatapathError> {
        copy_flows(&self.older, &mut self.maps);
        Ok(self.older.iter().try_for_each(|older| older.carry_links(&self.pins))?)
    }

    /// Removes the remaining pins of older agents. Failures are logged.
    pub fn remove_older(&mut self) {
        copy_flows(&self.older, &mut self.maps);
        for older in std::mem::take(&mut self.older) {
            if let Err(error) = older.remove() {
                tracing::warn!(%error, "cannot remove the pins of an older agent");
            }
        }
    }

    /// Removes every pin of this version, and with them the programs that no interface has any more. Says what could not be removed.
    pub fn remove_pins(&self) -> Vec<String> {
        owned::sweep(self.pins.root(), pins::OF_VERSION).failed
    }

    /// The id of a hook's program; 0 if it is not loaded.
    pub fn program_id(&self, hook: &Hook) -> u32 {
        self.programs.id(hook.set, hook.program)
    }

    /// How many connections there is room for.
    pub const fn connections(&self) -> u32 {
        self.connections
    }

    /// What each container may have of the tables of connections.
    pub const fn share(&self) -> Share {
        self.share
    }

    /// Where its maps are pinned.
    pub fn pins(&self) -> Pins {
        self.pins.clone()
    }

    /// Where a map is pinned.
    pub fn map_pin(&self, name: &str) -> PathBuf {
        self.pins.map(name)
    }
}

/// For how many entries `ASSURED` and `FLOWS` have room: maps that are there already keep what they were made with.
fn flow_room(pins: &Pins, wanted: Option<u32>) -> Result<[u32; 2], DatapathError> {
    let room = |name| {
        let info = MapInfo::from_pin(pins.map(name)).map_err(in_map(name))?;
        Ok::<_, DatapathError>(info.max_entries())
    };
    let is = [room("ASSURED")?, room("FLOWS")?];
    let wanted = room::flow_entries(wanted);
    if is != [wanted; 2] {
        tracing::warn!(
            connections = is.map(|entries| entries / 2).into_iter().min(),
            wanted = wanted / 2,
            "the room for translated connections is what the maps were made with; max_flows counts once the pins are gone"
        );
    }
    Ok(is)
}

/// Copies the connections of older agents, as far as these have an earlier layout. One that cannot be copied begins again, if it can.
fn copy_flows(older: &[Older], maps: &mut Maps) {
    for older in older {
        if let Err(error) = older.copy_flows(&mut maps.flows) {
            tracing::warn!(%error, abi = older.abi, "connections of an older agent cannot be copied");
        }
    }
}
