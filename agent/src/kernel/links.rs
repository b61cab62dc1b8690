//! What links there are.

use shunt_agent_api::FarEnd;

use super::{Kernel, KernelError};
use crate::netlink::link::{self, Kind, Link};

impl Kernel {
    /// The link with this index, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        Ok(link::by_index(&mut self.route, index)?)
    }

    /// The link of this name, if there is one.
    ///
    /// # Errors
    /// Netlink's.
    pub fn link_named(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        Ok(link::by_name(&mut self.route, name)?)
    }

    /// Whether the link with this index has this name, and is there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_named(&self, index: u32, name: &str) -> Result<bool, KernelError> {
        Ok(link::is_named(&self.route, index, name)?)
    }

    /// Sets the link with this index up, and says whether packets get through to its other end.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_up(&mut self, index: u32, far_end: FarEnd) -> Result<(), KernelError> {
        Ok(link::set_up(&mut self.route, index, far_end)?)
    }

    /// What a link is made of; none if there is none.
    ///
    /// # Errors
    /// Netlink's.
    pub fn kind(&mut self, index: u32) -> Result<Option<Kind>, KernelError> {
        Ok(link::kind(&mut self.route, index)?)
    }

    /// What every link is made of.
    ///
    /// # Errors
    /// Netlink's.
    pub fn kinds(&mut self) -> Result<Vec<Kind>, KernelError> {
        Ok(link::kinds(&mut self.route)?)
    }

    /// What every port of a bridge is made of.
    ///
    /// # Errors
    /// Netlink's.
    pub fn ports(&mut self, bridge: u32) -> Result<Vec<Kind>, KernelError> {
        Ok(link::ports(&mut self.route, bridge)?)
    }
}
