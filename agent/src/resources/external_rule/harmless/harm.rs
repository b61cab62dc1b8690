//! What rules refuse or change.

use std::net::IpAddr;

use super::addresses::Addresses;

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

    /// Whether packets to one of these addresses meet any of it.
    pub(crate) fn is_met_by(&self, addresses: impl IntoIterator<Item = IpAddr>) -> bool {
        self.by.is_some() || addresses.into_iter().any(|address| self.to.has(address))
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
