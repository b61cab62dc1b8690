//! Rule sets that let everything pass which containers of one bridge say to each other, as kube-proxy's do: nobody need be asked for it.
//!
//! They are known by what they do, for names can be anybody's. A chain is harmless where all that it refuses or changes is
//!
//! - what is on its way to other addresses than the containers': Services, the loopback network;
//! - what connection tracking calls invalid: it does so of what it has not seen, and the fast path's packets it does not see.
//!
//! What is not known here does harm, and so do rules of legacy iptables, which cannot be read.

mod addresses;
mod chain;
mod destination;

use std::net::IpAddr;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::BaseChain;
use shunt_netlink::nf_tables::TableOf;

use self::addresses::Addresses;
use self::chain::Reader;
use super::reading::source::{Kernel, Source};

/// What a chain refuses or changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Harm {
    /// The first of its rules by which any packet may be met.
    by: Option<String>,
    /// The destinations of those that others meet.
    to: Addresses,
}

impl Harm {
    /// What `chain` does.
    ///
    /// # Errors
    /// The kernel cannot list its rules.
    pub(crate) fn of(chain: &BaseChain) -> Result<Self, NetlinkError> {
        Self::read(chain, &mut Kernel)
    }

    fn read(chain: &BaseChain, source: &mut impl Source) -> Result<Self, NetlinkError> {
        if chain.policy.is_some_and(|policy| policy != libc::NF_ACCEPT as u32) {
            return Ok(Self {
                by: Some(format!("the policy of the chain {}", chain.name)),
                ..Self::default()
            });
        }
        let table = TableOf { family: chain.family, name: chain.table.clone() };
        Reader::new(source, &table).of(&chain.name)
    }

    /// That of a chain which cannot be read.
    pub(crate) fn unknown() -> Self {
        Self { by: Some("what cannot be read".to_owned()), ..Self::default() }
    }

    /// Whether packets to one of these addresses meet any of it.
    pub(crate) fn is_met_by(&self, addresses: impl IntoIterator<Item = IpAddr>) -> bool {
        self.by.is_some() || addresses.into_iter().any(|address| self.to.has(address))
    }

    /// Adds what another chain does.
    fn add(&mut self, other: &Self) {
        self.by = self.by.take().or_else(|| other.by.clone());
        self.to.add(&other.to);
    }

    /// Whether there is anything.
    fn is_any(&self) -> bool {
        self.by.is_some() || !self.to.is_empty()
    }
}

#[cfg(test)]
mod tests;
