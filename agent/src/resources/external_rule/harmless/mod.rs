//! Rule sets that let everything pass which containers of one bridge say to each other, as kube-proxy's do: nobody need be asked for it.
//!
//! They are known by what they do, for names can be anybody's. A chain is harmless where all that it refuses or changes is
//!
//! - what is on its way to other addresses than the containers': Services, the node's own, the loopback network;
//! - the source of what is on its way there, or comes from there: masquerading;
//! - what passes by other interfaces than the bridges;
//! - what a rule has marked, while no rule does any harm that marks, but for what the node sends or routes;
//! - what connection tracking calls invalid: it does so of what it has not seen, and the fast path's packets it does not see.
//!
//! Who may have other addresses than the agent knows is taken to have any: what is beyond a bridge's uplink, a container without addresses. A container is
//! reached by link-local addresses, groups and broadcasts, too, and sets that packets write change without a word.
//!
//! What is not known here does harm, and so do rules of legacy iptables, which cannot be read.

mod addresses;
mod bridges;
mod chain;
mod confinement;
mod harm;
mod leaving;
mod reach;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::BaseChain;
use shunt_netlink::nf_tables::TableOf;

pub(crate) use self::bridges::Bridges;
use self::chain::{Reader, Site};
pub(crate) use self::harm::Harm;
pub(crate) use self::reach::Reach;
use super::hooks::is_behind_tracking;
pub(crate) use super::reading::source::Kernel;
use super::reading::source::Source;

/// What `chain` does where these are the bridges.
///
/// # Errors
/// The kernel cannot list its rules.
pub(crate) fn harm_of(
    chain: &BaseChain,
    bridges: &Bridges,
    kernel: &mut Kernel,
) -> Result<Harm, NetlinkError> {
    read(chain, bridges, kernel)
}

fn read(chain: &BaseChain, bridges: &Bridges, source: &mut impl Source) -> Result<Harm, NetlinkError> {
    if chain.policy.is_some_and(|policy| policy != libc::NF_ACCEPT as u32) {
        return Ok(Harm::by(format!("the policy of the chain {}", chain.name)));
    }
    let table = TableOf { family: chain.family, name: chain.table.clone() };
    // Elsewhere a packet may be called invalid because it is not tracked yet.
    let site = Site { hook: chain.hook, is_tracked: is_behind_tracking(chain), bridges };
    Reader::new(source, &table, site).of(&chain.name)
}

#[cfg(test)]
mod tests;
