//! A container, as far as a network plugin sees one: an id and a network namespace.

use anyhow::Result;

use crate::{Lab, Namespace};

/// The name that every container's interface gets here.
pub(crate) const IFNAME: &str = "eth0";

/// An id and a namespace.
#[derive(Debug)]
pub struct Container {
    id: String,
    namespace: Namespace,
}

impl Container {
    /// Makes one with the id `id`, unique in its lab.
    ///
    /// # Errors
    /// When the namespace cannot be made.
    pub fn create(lab: &Lab, id: &str) -> Result<Self> {
        Ok(Self { id: id.to_owned(), namespace: lab.namespace(id)? })
    }

    /// `CNI_CONTAINERID`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}
