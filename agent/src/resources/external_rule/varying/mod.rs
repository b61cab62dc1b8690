//! Rules that may judge the packets of one flow differently: rates, quotas, lengths, payloads, queues. What they let through once says nothing of the next
//! packet, so that flows that meet them are the kernel's.
//!
//! Rules that only packets of state `new` meet do not count, nor does what is behind a rule that accepts whatever is established: packets that open a
//! flow go by the kernel anyway, and so do chains of translations, which they alone meet. The latter does where rules have packets not tracked, for these
//! are never established. What is not known here counts.

mod never_fast;
mod rule;
mod walk;

use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::BaseChain;
use shunt_netlink::nf_tables::TableOf;

use self::walk::Walk;
use super::filters;
use super::hooks::{NAT, is_behind_tracking};
use super::reading::source::{Kernel, Source};

/// The first such rule that packets meet which come to these chains; none without any.
///
/// # Errors
/// The kernel cannot list its rules.
pub(crate) fn first(chains: &[BaseChain]) -> Result<Option<String>, NetlinkError> {
    first_of(chains, &mut Kernel::default())
}

fn first_of(chains: &[BaseChain], source: &mut impl Source) -> Result<Option<String>, NetlinkError> {
    // What a rule of legacy iptables does is not known; its table `raw` is the one where packets are not tracked.
    let tracks = !filters::is_old_table_used("raw");
    let (found, untracks) = look(chains, source, tracks)?;
    if found.is_some() || !untracks { Ok(found) } else { Ok(look(chains, source, false)?.0) }
}

/// The first such rule, and whether there is one that has packets not tracked.
fn look(
    chains: &[BaseChain],
    source: &mut impl Source,
    tracks: bool,
) -> Result<(Option<String>, bool), NetlinkError> {
    let mut untracks = false;
    for chain in chains.iter().filter(|chain| chain.kind != NAT) {
        let table = TableOf { family: chain.family, name: chain.table.clone() };
        let seen = Walk::new(source, &table, tracks && is_behind_tracking(chain)).of(&chain.name)?;
        untracks |= seen.untracks;
        if seen.varying.is_some() {
            return Ok((seen.varying, untracks));
        }
    }
    Ok((None, untracks))
}

#[cfg(test)]
mod tests;
