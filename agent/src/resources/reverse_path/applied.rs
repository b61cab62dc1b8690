//! Has the programs take from outside what the kernel would take (`rp_filter`): keeps `REVERSE_PATHS` as the kernel filters at the
//! interfaces of NAT ingress.
//!
//! Nobody is told when a filter changes, so it is asked for each second while there are host ports.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shunt_dataplane::abi::{REVERSE_PATH_LOOSE, REVERSE_PATH_NONE, REVERSE_PATH_STRICT, ReversePath};

use crate::failpoints;
use crate::kernel::KernelError;
use crate::resources::difference::Difference;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// The least time between two looks at the multipath routes: there may be many routes.
const PERIOD: Duration = Duration::from_secs(10);

/// The value of `rp_filter` for the strict one.
const STRICT: i32 = 1;

/// The entries of all such interfaces.
pub(crate) struct ReversePaths;

impl Resource for ReversePaths {
    fn name(&self) -> String {
        "reverse path filters".to_owned()
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        Ok(Finding::entries(
            "REVERSE_PATHS",
            &node.datapath.reverse_paths()?,
            &node.reverse_paths.entries,
            |ifindex| *ifindex,
        ))
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        let difference = Difference::between(&node.datapath.reverse_paths()?, &node.reverse_paths.entries);
        for ifindex in difference.erased {
            node.datapath.erase_reverse_path(ifindex)?;
        }
        for (ifindex, path) in difference.written {
            node.datapath.write_reverse_path(ifindex, path)?;
        }
        Ok(())
    }
}

impl Node {
    /// Follows the kernel's filters.
    pub(crate) fn update_reverse_paths(&mut self) {
        let wanted = if self.is_mapped() { self.find_reverse_paths() } else { Ok(BTreeMap::new()) };
        let updated = wanted.map_err(Refusal::from).and_then(|wanted| {
            if self.reverse_paths.entries == wanted {
                return Ok(());
            }
            tracing::debug!(?wanted, "the kernel's reverse path filters");
            self.reverse_paths.entries = wanted;
            ReversePaths.apply(self, Cause::New)
        });
        if let Err(error) = updated {
            tracing::warn!(%error, "cannot follow the reverse path filters");
        }
    }

    fn find_reverse_paths(&mut self) -> Result<BTreeMap<u32, ReversePath>, KernelError> {
        let mut filters = self.kernel.reverse_path_filters(self.nat_ingress.hooks.keys().copied())?;
        filters.retain(|ifindex, filter| *filter != 0 && self.is_judged_itself(*ifindex));
        let is_strict =
            |(ifindex, filter): (&u32, &i32)| *filter == STRICT && !self.leads_to_containers(*ifindex);
        let has_strict = filters.iter().any(is_strict);
        self.read_multipath(has_strict)?;
        // The kernel takes what comes by any hop: the strict one's program has to know the others.
        for group in &self.reverse_paths.multipath {
            if group.iter().any(|ifindex| filters.get(ifindex) == Some(&STRICT)) {
                group.iter().for_each(|ifindex| _ = filters.entry(*ifindex).or_insert(0));
            }
        }
        let path = |(ifindex, filter)| {
            let filter = match filter {
                0 => REVERSE_PATH_NONE,
                // Without an address of its own an interface takes nothing by a route that leads elsewhere (`fib_validate_source`).
                STRICT => REVERSE_PATH_STRICT,
                _ if !self.nat_ingress.has_v4_address(ifindex) => REVERSE_PATH_STRICT,
                _ => REVERSE_PATH_LOOSE,
            };
            let mut groups = (1..).zip(&self.reverse_paths.multipath);
            let group = groups.find(|(_, group)| group.contains(&ifindex)).map_or(0, |(number, _)| number);
            (ifindex, ReversePath { filter, group })
        };
        Ok(filters.into_iter().map(path).collect())
    }

    /// Reads the multipath routes, at times, where any interface is strict.
    fn read_multipath(&mut self, has_strict: bool) -> Result<(), KernelError> {
        let now = failpoints::now();
        let is_due = self.reverse_paths.routes_read.is_none_or(|read| now.duration_since(read) > PERIOD);
        if !has_strict {
            self.reverse_paths.multipath.clear();
            self.reverse_paths.routes_read = None;
        } else if is_due {
            self.reverse_paths.routes_read = Some(now);
            self.reverse_paths.multipath = groups(self.kernel.multipath_interfaces()?);
        }
        Ok(())
    }

    /// Whether the kernel judges what comes by an interface as that interface's: a port's is its master's.
    fn is_judged_itself(&mut self, ifindex: u32) -> bool {
        self.kernel.link(ifindex).ok().flatten().is_some_and(|link| link.master.is_none())
    }
}

/// The interfaces that multipath routes have in common, each in one group.
fn groups(routes: Vec<BTreeSet<u32>>) -> Vec<BTreeSet<u32>> {
    let mut groups: Vec<BTreeSet<u32>> = Vec::new();
    for route in routes {
        let (together, apart) =
            groups.into_iter().partition(|group: &BTreeSet<u32>| !group.is_disjoint(&route));
        groups = apart;
        groups.push(together.into_iter().chain([route]).flatten().collect());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_of_routes_with_a_common_one_are_a_group() {
        let routes = [[3, 4], [8, 9], [5, 6], [4, 5]].map(BTreeSet::from);
        let found = groups(routes.to_vec());
        assert_eq!(found, [BTreeSet::from([8, 9]), BTreeSet::from([3, 4, 5, 6])]);
    }
}
