//! Stations that the programs learned behind uplinks: expiry, the limit of their number, and static FDB entries in the kernel's bridge,
//! which does not see the frames of the fast path.

use std::collections::HashSet;
use std::time::Duration;

use shunt_agent_api::{FdbEntry, FdbKind};
use shunt_dataplane::abi::StationKey;
use shunt_dataplane::abi::learning::{Learned, MAX_HELD};
use shunt_netlink::link::Link;

use super::ageing;
use crate::kernel::KernelError;
use crate::registry::Uplink;
use crate::resources::clock::boot_time;
use crate::resources::{Node, Refusal};
use crate::{failpoints, mac};

/// Period of the check.
const PERIOD: Duration = Duration::from_secs(5);

/// Least time between two FDB updates of one station, in nanoseconds; the bridge ages an entry out after five
/// minutes.
const RETOLD: u64 = 60_000_000_000;

/// FDB updates per check, so that a flood of addresses does not occupy the agent. The oldest update is
/// repeated first; all have their turn within five minutes.
const TOLD_AT_ONCE: usize = 512;

impl Node {
    /// Expires old stations if a check is due, and evicts stations of a full uplink.
    pub(crate) fn sweep_learned(&mut self) {
        if self.registry.uplinks.is_empty() {
            return;
        }
        let is_due = self.learning.last.is_none_or(|last| failpoints::now().duration_since(last) > PERIOD);
        if !is_due && !self.is_crowded() {
            return;
        }
        self.learning.last = Some(failpoints::now());
        if let Err(error) = self.sweep_stations_beyond() {
            tracing::warn!(%error, "cannot expire learned stations");
        }
    }

    fn is_crowded(&self) -> bool {
        let held = |uplink| self.datapath.learning(uplink).ok().flatten().map_or(0, |learning| learning.held);
        self.registry.uplinks.values().any(|uplink| held(uplink) > ageing::CROWDED as u64)
    }

    fn sweep_stations_beyond(&mut self) -> Result<(), KernelError> {
        let stations = self.datapath.learned()?;
        let now = boot_time();
        let ageing = self.ageing()?;
        let gone: HashSet<_> = ageing::stale(&stations, now, &ageing).into_iter().collect();
        gone.iter().try_for_each(|key| self.datapath.forget_learned(key))?;
        let left: Vec<_> = stations.into_iter().filter(|(key, _)| !gone.contains(key)).collect();
        for uplink in self.registry.uplinks.values().cloned().collect::<Vec<_>>() {
            let held = left.iter().filter(|(_, known)| known.station.ifindex == uplink.link.index).count();
            self.datapath.write_held(&uplink, held as u64)?;
        }
        self.tell_the_bridge(&left, now);
        Ok(())
    }

    /// Updates the FDB for stations that were heard since their last update. Stations in VLANs are unknown to
    /// the kernel's bridge.
    fn tell_the_bridge(&mut self, stations: &[(StationKey, Learned)], now: u64) {
        let known: HashSet<_> = stations.iter().map(|(key, _)| *key).collect();
        self.learning.told.retain(|key, _| known.contains(key));
        let told = &self.learning.told;
        let is_due = |(key, known): &&(StationKey, Learned)| {
            let is_news = told.get(key).is_none_or(|(ifindex, seen)| {
                *ifindex != known.station.ifindex || known.seen.saturating_sub(*seen) >= RETOLD
            });
            // A silent station may have moved to where only the kernel's bridge hears it.
            key.vid == 0 && is_news && now.saturating_sub(known.seen) < RETOLD
        };
        let mut due: Vec<_> = stations.iter().filter(is_due).copied().collect();
        due.sort_by_key(|(key, _)| told.get(key).map_or(0, |(_, seen)| *seen));
        for (key, known) in due.into_iter().take(TOLD_AT_ONCE) {
            let ifindex = known.station.ifindex;
            self.learning.told.insert(key, (ifindex, known.seen));
            if let Err(error) = self.kernel.refresh_station(ifindex, key.mac) {
                tracing::debug!(mac = mac::format(key.mac), %error, "cannot add a learned station to the bridge's FDB");
            }
        }
    }

    /// An uplink that loses its carrier loses its stations, so that other uplinks are tried; a new MTU makes
    /// all stations be learned again.
    pub(crate) fn uplink_changed(&mut self, uplink: &Uplink, link: &Link) -> Result<(), Refusal> {
        if !link.carrier {
            self.forget_beyond(uplink)?;
        }
        let uplink = self.apply_port_state(uplink)?;
        // The event may be old.
        let mtu = self.kernel.link(uplink.link.index)?.map_or(0, |link| link.mtu);
        Ok(self.datapath.write_learning(&uplink, mtu)?)
    }

    pub(crate) fn forget_beyond(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        self.datapath.forget_beyond(uplink)?;
        // The kernel's bridge has flushed them, too.
        self.learning.told.retain(|_, (ifindex, _)| *ifindex != uplink.link.index);
        Ok(())
    }

    /// The warning about stations that are not learned: frames to them are flooded.
    pub(crate) fn uplinks_are_full(&self) -> Vec<String> {
        let refused = |uplink| self.datapath.learning(uplink).ok().flatten().map_or(0, |known| known.refused);
        let uplinks = self.registry.uplinks.values().map(|uplink| (&uplink.link.name, refused(uplink)));
        let full = uplinks.filter(|(_, refused)| *refused != 0);
        full.map(|(name, refused)| {
            format!("the uplink {name} has more stations than are learned, {MAX_HELD}: {refused} times there was no room")
        })
        .collect()
    }

    /// A [`FdbEntry`] for each learned station that has not expired.
    pub(crate) fn learned_reports(&self, name: impl Fn(u32) -> String) -> Result<Vec<FdbEntry>, Refusal> {
        let now = boot_time();
        let known = self
            .datapath
            .learned()?
            .into_iter()
            .filter(|(_, known)| shunt_dataplane::stages::learn::is_known(known, now));
        let report = |(key, known): (StationKey, Learned)| FdbEntry {
            bridge: name(key.bridge),
            vid: known.vid,
            mac: mac::format(key.mac),
            port: name(known.station.ifindex),
            kind: FdbKind::Learned,
            age_seconds: now.saturating_sub(known.seen) / 1_000_000_000,
        };
        Ok(known.map(report).collect())
    }
}
