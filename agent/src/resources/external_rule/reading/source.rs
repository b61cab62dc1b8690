//! Where rules are read.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::{
    Element, Expression, Set, TableOf, elements_of, rules_of_chain, set_of, sets_written_in,
};

/// Where the rules of a table are read.
pub(in super::super) trait Source {
    /// The rules of a chain in their order.
    fn rules(&mut self, table: &TableOf, chain: &str) -> Result<Vec<Vec<Expression>>, NetlinkError>;

    /// A set, without its elements.
    fn set(&mut self, table: &TableOf, set: &str) -> Result<Set, NetlinkError>;

    /// The elements of a set.
    fn elements(&mut self, table: &TableOf, set: &str) -> Result<Vec<Element>, NetlinkError>;
}

/// The kernel's rules, for one look at them: what a rule looks up for two reasons, or several rules do, is read once.
#[derive(Default)]
pub(crate) struct Kernel {
    elements: HashMap<(TableOf, String), Vec<Element>>,
    sets: HashMap<(TableOf, String), Set>,
    /// The sets that rules of a table write.
    written: HashMap<TableOf, BTreeSet<String>>,
}

impl Source for Kernel {
    fn rules(&mut self, table: &TableOf, chain: &str) -> Result<Vec<Vec<Expression>>, NetlinkError> {
        rules_of_chain(table, chain)
    }

    fn set(&mut self, table: &TableOf, set: &str) -> Result<Set, NetlinkError> {
        match self.sets.entry((table.clone(), set.to_owned())) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(unknown) => {
                let mut known = set_of(table, set)?;
                let written = match self.written.entry(table.clone()) {
                    Entry::Occupied(written) => written.into_mut(),
                    Entry::Vacant(unread) => unread.insert(sets_written_in(table)?),
                };
                known.is_written_by_packets |= written.contains(set);
                Ok(unknown.insert(known).clone())
            }
        }
    }

    fn elements(&mut self, table: &TableOf, set: &str) -> Result<Vec<Element>, NetlinkError> {
        match self.elements.entry((table.clone(), set.to_owned())) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(unknown) => Ok(unknown.insert(elements_of(table, set)?).clone()),
        }
    }
}
