//! The shares of an uplink: what is there, and what is to be.

use std::collections::{BTreeMap, BTreeSet};

use shunt_netlink::Connection;
use shunt_netlink::tc::selector::{self, Found};
use shunt_netlink::tc::shares::{self, Class, LINK, REST, Root, Said};

use super::Kernel;
use super::error::KernelError;

/// An uplink's queue as it is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Classes by their minor numbers, those of the link and of the rest among them.
    pub classes: BTreeMap<u16, Class>,
    /// The class of what came in by an interface, by its name.
    pub from: BTreeMap<String, u16>,
}

/// What is there of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundShares {
    /// Classes by their minor numbers.
    pub classes: BTreeMap<u16, Said>,
    /// Filters.
    pub filters: Vec<Found>,
}

impl FoundShares {
    /// The classes that are missing or altered. The link's comes first, for the others hang below it; then the rest's, which leaves room for
    /// the others.
    pub fn missing_classes(&self, wanted: &Shares) -> Vec<u16> {
        let differs = |(minor, class): (&u16, &Class)| self.classes.get(minor) != Some(&class.said());
        let missing = wanted.classes.iter().filter(|it| differs((it.0, it.1))).map(|(minor, _)| *minor);
        let mut missing: Vec<_> = missing.collect();
        missing.sort_by_key(|minor| match *minor {
            LINK => (0, LINK),
            REST => (1, REST),
            other => (2, other),
        });
        missing
    }

    /// The interfaces without a filter, and their classes.
    pub fn missing_filters<'a>(&self, wanted: &'a Shares) -> Vec<(&'a str, u16)> {
        let there: BTreeSet<_> =
            self.filters.iter().filter_map(|it| Some((it.from.as_deref()?, it.class))).collect();
        let from = wanted.from.iter().map(|(name, class)| (name.as_str(), *class));
        from.filter(|wanted| !there.contains(wanted)).collect()
    }

    /// Filters that nobody wants.
    pub fn surplus_filters<'a>(&'a self, wanted: &Shares) -> Vec<&'a Found> {
        let class = |found: &Found| found.from.as_ref().and_then(|name| wanted.from.get(name)).copied();
        self.filters.iter().filter(|found| class(found) != Some(found.class)).collect()
    }

    /// Classes that nobody wants.
    pub fn surplus_classes(&self, wanted: &Shares) -> Vec<u16> {
        self.classes.keys().filter(|minor| !wanted.classes.contains_key(minor)).copied().collect()
    }
}

impl Kernel {
    /// What is at the root of a link.
    ///
    /// # Errors
    /// Netlink's.
    pub fn root_queue(&mut self, index: u32) -> Result<Root, KernelError> {
        Ok(shares::root(&mut self.route, index)?)
    }

    /// The classes and filters of a link.
    ///
    /// # Errors
    /// Netlink's.
    pub fn shares(&mut self, index: u32) -> Result<FoundShares, KernelError> {
        let classes = shares::classes(&mut self.route, index)?;
        Ok(FoundShares { classes, filters: selector::list(&mut self.route, index)? })
    }

    /// Makes the queue of a link what is wanted, of what was found; `has_root` is whether ours is at the root. Whose class stays loses
    /// nothing, whatever becomes of others.
    ///
    /// # Errors
    /// Netlink's; what was done stays.
    pub fn share_out(
        &mut self,
        index: u32,
        has_root: bool,
        found: &FoundShares,
        wanted: &Shares,
    ) -> Result<(), KernelError> {
        if !has_root {
            shares::make(&mut self.route, index)?;
        }
        for filter in found.surplus_filters(wanted) {
            selector::remove(&mut self.route, index, filter)?;
        }
        for minor in found.missing_classes(wanted) {
            shares::set_class(&mut self.route, index, minor, wanted.classes[&minor])?;
        }
        for (from, class) in found.missing_filters(wanted) {
            selector::add(&mut self.route, index, from, class)?;
        }
        for minor in found.surplus_classes(wanted) {
            shares::remove_class(&mut self.route, index, minor)?;
        }
        Ok(())
    }

    /// The links that are shared out.
    ///
    /// # Errors
    /// Netlink's.
    pub fn shared_links(&mut self) -> Result<Vec<u32>, KernelError> {
        Ok(shares::all(&mut self.route)?)
    }

    /// Takes the queue of a link away.
    ///
    /// # Errors
    /// Netlink's.
    pub fn unshare(&mut self, index: u32) -> Result<(), KernelError> {
        Ok(shares::remove(&mut self.route, index)?)
    }
}

/// Takes the queues of all links away, also where no agent is left that would know of them.
///
/// # Errors
/// Netlink's; some may be left.
pub fn unshare_all() -> Result<(), KernelError> {
    let mut connection = Connection::open()?;
    for index in shares::all(&mut connection)? {
        shares::remove(&mut connection, index)?;
    }
    Ok(())
}
