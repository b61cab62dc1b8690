//! Others' own translations of host ports that the kernel opens by our rules: a chain of theirs at `prerouting` or `output` that comes first takes the
//! connection, and ours does not meet it. They win, as an operator means it; the log of an ADD and the status name them.
//!
//! A rule counts unless it is known to be for another protocol, port or address. What legacy iptables translates cannot be read.

mod asked;
mod walk;

use std::collections::BTreeMap;
use std::net::IpAddr;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::{BaseChain, base_chains};
use shunt_netlink::nf_tables::TableOf;

use self::asked::HostPort;
use self::walk::Walk;
use super::filters::say;
use super::hooks::NAT;
use super::reading::source::{Kernel, Source};
use crate::datapath::encode::protocol_number;
use crate::nft;
use crate::resources::Node;

/// Host ports that one warning names.
const MOST: usize = 8;

impl Node {
    /// The warnings about host ports that others translate before the kernel does by our rules. If rules cannot be read, there is none.
    pub(crate) fn preceded_host_ports(&self) -> Vec<String> {
        let opened = self.registry.with_rules().filter(|it| it.opened);
        let own: Vec<IpAddr> = self.own_addresses().collect();
        let ports: Vec<HostPort> = opened
            .flat_map(|it| it.port.mappings.iter())
            .map(|mapping| HostPort {
                protocol: protocol_number(mapping.protocol),
                port: mapping.host_port,
                at: mapping.address().map_or_else(|| own.clone(), |address| vec![address]),
                said: mapping.to_string(),
            })
            .collect();
        if ports.is_empty() {
            return Vec::new();
        }
        let preceded = chains().and_then(|chains| preceded(&ports, &chains, &mut Kernel::default()));
        let preceded = preceded.unwrap_or_else(|error| {
            tracing::debug!(%error, "others' translations cannot be read");
            BTreeMap::new()
        });
        preceded.iter().map(|(chain, ports)| warning(chain, ports)).collect()
    }
}

fn warning(chain: &str, ports: &[String]) -> String {
    let more = ports.len().saturating_sub(MOST);
    let named = ports[..ports.len() - more].join(", ");
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{chain} may translate host ports before shunt does, and wins: {named}{more}")
}

/// Others' chains of translations that come before ours.
fn chains() -> Result<Vec<BaseChain>, NetlinkError> {
    let mut chains = base_chains()?;
    chains.retain(|chain| {
        let is_ip =
            [libc::NFPROTO_INET, libc::NFPROTO_IPV4, libc::NFPROTO_IPV6].contains(&chain.family.into());
        let is_way = [libc::NF_INET_PRE_ROUTING, libc::NF_INET_LOCAL_OUT].contains(&(chain.hook as i32));
        // Of equal ones it is not known which comes first.
        let is_first = chain.priority <= nft::LEADING_PRIORITY;
        is_ip && is_way && is_first && chain.kind == NAT && chain.rules != 0 && !nft::is_own(chain)
    });
    Ok(chains)
}

/// The host ports that each of these chains may translate.
fn preceded(
    ports: &[HostPort],
    chains: &[BaseChain],
    source: &mut impl Source,
) -> Result<BTreeMap<String, Vec<String>>, NetlinkError> {
    let mut found = BTreeMap::new();
    for chain in chains {
        let table = TableOf { family: chain.family, name: chain.table.clone() };
        let translated = Walk::new(source, &table, ports).of(&chain.name)?;
        if !translated.is_empty() {
            let said = translated.into_iter().map(|at| ports[at].said.clone()).collect();
            found.insert(say(chain), said);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
