//! What is kept while somebody watches.

use std::collections::HashSet;
use std::sync::Arc;

use aya::maps::{Array, HashMap as BpfHashMap, MapData};
use shunt_dataplane::abi::watch::Watch;

use super::watcher::Shared;
use crate::datapath::{DatapathError, in_map};

/// Those who watch, if there are any.
#[derive(Default)]
pub(crate) struct Watching(pub(super) Option<Running>);

/// The watchers, and what the programs are told for them.
pub(super) struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) watch: Array<MapData, Watch>,
    pub(super) ports: BpfHashMap<MapData, u32, u32>,
    pub(super) in_force: Watch,
    pub(super) watched_ports: HashSet<u32>,
    /// Whether the programs in force tell every packet, and not drops only.
    pub(super) capturing: bool,
    /// Whether they could not be replaced by those for drops only: they serve as well, until watchers come or go.
    pub(super) keeps_capturing: bool,
}

impl Running {
    /// Tells the programs what is wanted.
    ///
    /// # Errors
    /// The kernel's; it may be told again.
    pub(super) fn tell(&mut self, wanted: Watch, ports: &HashSet<u32>) -> Result<(), DatapathError> {
        if wanted.only_some == 0 {
            self.set(wanted)?;
        }
        // These leave their room to the new ones.
        for port in self.watched_ports.extract_if(|port| !ports.contains(port)) {
            // It may have gone.
            let _gone = self.ports.remove(&port);
        }
        for port in ports {
            if !self.watched_ports.contains(port) {
                self.ports.insert(port, 1, 0).map_err(in_map("WATCHED_PORTS"))?;
                self.watched_ports.insert(*port);
            }
        }
        self.set(wanted)
    }

    /// Has nothing told any more, even by a program that cannot be replaced.
    pub(super) fn silence(&mut self) {
        if let Err(error) = self.set(Watch::default()) {
            tracing::warn!(%error, "watched programs may go on telling");
        }
    }

    fn set(&mut self, wanted: Watch) -> Result<(), DatapathError> {
        if wanted != self.in_force {
            self.watch.set(0, wanted, 0).map_err(in_map("WATCH"))?;
            self.in_force = wanted;
        }
        Ok(())
    }
}
