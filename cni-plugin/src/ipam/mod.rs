//! Addresses: from the IPAM in this process where the configuration names it, else from any plugin in CNI_PATH.

pub(crate) mod built_in;
mod delegate;
mod error;
pub mod host_local;

pub(crate) use error::IpamError;

use std::path::PathBuf;

use shunt_leases::straightened;

use crate::call::{Call, Verb};
use crate::config::{BUILT_IN_IPAM, Config};
use crate::result::AddResult;
use delegate::Delegate;
use host_local::data_dir;

/// Who gives out addresses for this call.
#[derive(Debug)]
enum Source<'a> {
    /// No IPAM: a layer 2 network.
    None,
    /// This process.
    BuiltIn,
    /// A program.
    Delegate(Delegate<'a>),
}

/// Where the network's IPAM keeps who holds which address, if its files are known: the agent looks after them. Without links in
/// it, for the agent follows none; none where there is no such directory.
pub(crate) fn lease_dir(config: &Config) -> Option<PathBuf> {
    config.ipam_type().filter(|name| [BUILT_IN_IPAM, "host-local"].contains(name))?;
    straightened(&data_dir(config.ipam()).ok()?).ok()
}

/// The IPAM of one call.
#[derive(Debug)]
pub(crate) struct Ipam<'a> {
    config: &'a Config,
    call: &'a Call,
    source: Source<'a>,
}

impl<'a> Ipam<'a> {
    /// Finds the IPAM that the configuration names.
    ///
    /// # Errors
    /// [`IpamError::Name`], [`IpamError::NotFound`].
    pub(crate) fn of(config: &'a Config, call: &'a Call) -> Result<Self, IpamError> {
        let source = match config.ipam_type() {
            None => Source::None,
            Some(BUILT_IN_IPAM) => Source::BuiltIn,
            Some(name) => Source::Delegate(Delegate::find(name, &call.path)?),
        };
        Ok(Self { config, call, source })
    }

    /// Whether the configuration names an IPAM.
    pub(crate) fn exists(&self) -> bool {
        !matches!(self.source, Source::None)
    }

    /// Whether it is this process.
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self.source, Source::BuiltIn)
    }

    /// Whether it is another program, which may hold addresses even when it says that it failed.
    pub(crate) fn is_delegate(&self) -> bool {
        matches!(self.source, Source::Delegate(_))
    }

    /// Whether it is to be asked when there is an interface that packets get through, as the reference bridge plugin does. A DHCP client
    /// needs one, and of an unknown IPAM nobody knows; the first two look at their files and their configuration.
    pub(crate) fn needs_interface(&self) -> bool {
        self.is_delegate() && !["host-local", "static"].contains(&self.config.ipam_type().unwrap_or_default())
    }

    /// Whether it is to be told of a DEL while the interface still works: a DHCP client gives its lease back by it. Of others an address
    /// is free for the next one only when the container has it no more.
    pub(crate) fn releases_by_interface(&self) -> bool {
        self.is_delegate() && self.config.ipam_type() == Some("dhcp")
    }

    /// Addresses, routes and resolver for the attachment.
    pub(crate) fn add(&self) -> Result<AddResult, IpamError> {
        match &self.source {
            Source::None => Ok(AddResult::default()),
            Source::BuiltIn => built_in::add(self.config, self.call),
            Source::Delegate(delegate) => delegate.add(self.config, self.call),
        }
    }

    /// Gives back what the attachment holds; nothing is fine too.
    pub(crate) fn del(&self) -> Result<(), IpamError> {
        match &self.source {
            Source::None => Ok(()),
            Source::BuiltIn => built_in::del(self.config, self.call),
            Source::Delegate(delegate) => delegate.tell(Verb::Del, self.config, self.call),
        }
    }

    /// Vouches for the attachment's addresses.
    pub(crate) fn check(&self) -> Result<(), IpamError> {
        match &self.source {
            Source::None => Ok(()),
            Source::BuiltIn => built_in::check(self.config, self.call),
            Source::Delegate(delegate) => delegate.tell(Verb::Check, self.config, self.call),
        }
    }

    /// Gives back what none of `valid`, pairs of container and interface, holds.
    pub(crate) fn gc(&self, valid: &[(String, String)]) -> Result<(), IpamError> {
        match &self.source {
            Source::None => Ok(()),
            Source::BuiltIn => built_in::gc(self.config, valid),
            Source::Delegate(delegate) => delegate.tell(Verb::Gc, self.config, self.call),
        }
    }

    /// Says whether an ADD would find an address.
    pub(crate) fn status(&self) -> Result<(), IpamError> {
        match &self.source {
            Source::None => Ok(()),
            Source::BuiltIn => built_in::status(self.config),
            Source::Delegate(delegate) => delegate.tell(Verb::Status, self.config, self.call),
        }
    }
}
