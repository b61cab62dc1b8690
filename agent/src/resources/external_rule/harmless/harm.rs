//! What rules refuse or change.

use super::addresses::Addresses;
use super::reach::Reach;

/// What a chain refuses or changes. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Harm {
    /// The first of its rules by which any packet may be met.
    pub(super) by: Option<String>,
    /// The destinations of those that others meet.
    pub(super) to: Addresses,
}

impl Harm {
    /// What any packet may be met by.
    pub(super) fn by(who: String) -> Self {
        Self { by: Some(who), ..Self::default() }
    }

    /// That of a chain which cannot be read.
    pub(crate) fn unknown() -> Self {
        Self::by("what cannot be read".to_owned())
    }

    /// Whether packets to any of these meet any of it.
    pub(crate) fn is_met_in(&self, reach: &Reach) -> bool {
        let is_met_by_known = || reach.addresses.iter().any(|address| self.to.has(*address));
        let is_met_by_some = || reach.is_open || self.to.has_link_local() || is_met_by_known();
        self.by.is_some() || !self.to.is_empty() && is_met_by_some()
    }

    /// Adds what another does.
    pub(super) fn add(&mut self, other: &Self) {
        self.by = self.by.take().or_else(|| other.by.clone());
        self.to.add(&other.to);
    }

    /// Whether there is anything.
    pub(super) fn is_any(&self) -> bool {
        self.by.is_some() || !self.to.is_empty()
    }
}
