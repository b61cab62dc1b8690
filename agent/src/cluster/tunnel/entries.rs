//! What the VXLAN device is told: behind which address each node's device is, and which device each next hop is.

use std::collections::{BTreeMap, BTreeSet};

use shunt_netlink::vtep::{FixedNeighbour, RemoteStation, fixed_neighbours, remote_stations};
use shunt_netlink::{Connection, NetlinkError, Request};

use super::far::Far;
use super::station;

/// What has become of the entries.
#[derive(Default)]
pub(super) struct Entries {
    /// The pods that are led to.
    pub(super) led: Vec<Far>,
    /// What is no longer wanted, to be done once nothing leads there.
    pub(super) stale: Vec<Request>,
    pub(super) warnings: Vec<String>,
}

impl Entries {
    /// Has the entries be there. `own` is this node's station.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub(super) fn keep(
        connection: &mut Connection,
        index: u32,
        own: [u8; 6],
        far: &[Far],
    ) -> Result<Self, NetlinkError> {
        let mut entries = Self::default();
        let (mut stations, mut neighbours) = (BTreeMap::new(), BTreeSet::new());
        for far in far {
            let mac = station::of(far.remote);
            let first = *stations.entry(mac).or_insert(far.remote);
            if first == far.remote && mac != own {
                neighbours.insert(FixedNeighbour { index, ip: far.pods.network(), mac });
                entries.led.push(*far);
                continue;
            }
            entries.warnings.push(format!(
                "the nodes {first} and {} would have the same station on the VXLAN device: give one of them another address",
                far.remote
            ));
        }
        stations.remove(&own);
        let stations: BTreeSet<_> =
            stations.into_iter().map(|(mac, remote)| RemoteStation { index, mac, remote }).collect();
        let known = connection.list(remote_stations(index))?;
        let known: BTreeSet<_> = known.into_iter().filter(|one| one.index == index).collect();
        let known_neighbours = connection.list(fixed_neighbours(index))?;
        let known_neighbours: BTreeSet<_> =
            known_neighbours.into_iter().filter(|one| one.index == index).collect();
        let missing = stations.difference(&known).map(RemoteStation::put);
        let missing = missing.chain(neighbours.difference(&known_neighbours).map(FixedNeighbour::put));
        for put in missing {
            entries.warnings.extend(connection.run(put).err().map(|error| error.to_string()));
        }
        let stale = known.difference(&stations).filter(|one| station::is_ours(one.mac));
        entries.stale.extend(stale.filter(|one| !is_replaced(one, &stations)).map(RemoteStation::take));
        let stale = known_neighbours.difference(&neighbours).filter(|one| station::is_ours(one.mac));
        let is_kept = |one: &&FixedNeighbour| !neighbours.iter().any(|kept| kept.ip == one.ip);
        entries.stale.extend(stale.filter(is_kept).map(FixedNeighbour::take));
        Ok(entries)
    }
}

/// Whether the station's entry is another one by now.
fn is_replaced(one: &RemoteStation, stations: &BTreeSet<RemoteStation>) -> bool {
    stations.iter().any(|kept| kept.mac == one.mac)
}
