//! Keeps the nf_tables rules equal to what the attachments need.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::thread;

use shunt_agent_api::{BridgePort, PortMapping, Protocol};

use crate::nft::{self, Committed, Contents, HostPortRule, MasqueradeRule, NftError, Rules, Watched};
use crate::rcu::Expedited;
use crate::resources::heeding::opened_ports;
use crate::resources::masquerade::unmasqueraded;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// The agent's table of nf_tables. A firewall that is restarted, or `nft flush ruleset`, takes it away.
pub(crate) struct Table;

impl Resource for Table {
    fn name(&self) -> String {
        "the table of nf_tables".to_owned()
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        let is_unchanged = match &mut node.watched_rules {
            Some(watched) => watched.is_unchanged().map_err(NftError::from)?,
            // They could not be set: the fault is known.
            None => true,
        };
        Ok(if is_unchanged { Vec::new() } else { vec![Finding::Rules] })
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.rules = None;
        Ok(node.set_rules()?)
    }
}

impl Node {
    /// Replaces the kernel's rules if the attachments need others. Where the kernel cannot open host ports the programs do from then on: the caller's
    /// attachments may have changed.
    ///
    /// # Errors
    /// The kernel refuses; its rules are as they were.
    pub(crate) fn set_rules(&mut self) -> Result<(), NftError> {
        match self.set_wanted() {
            Err(error) if error.is_lack() && self.opens_host_ports() => {
                self.open_by_programs(&error);
                self.set_wanted()
            }
            set => set,
        }
    }

    fn set_wanted(&mut self) -> Result<(), NftError> {
        let wanted = self.wanted();
        if self.rules.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let expedited = self.kernel.grace_periods().expedite();
        let contents = match replace(&wanted) {
            // Without rules that translate a kernel without nf_tables is fine.
            Err(_) if wanted.translates_nothing() && self.rules.is_none() => Contents::default(),
            replaced => {
                let committed = replaced?;
                let contents = committed.contents();
                settle(committed, expedited);
                contents
            }
        };
        if !wanted.opened.is_empty() {
            self.heeding.opening.grant();
        }
        tracing::info!(
            masquerading = wanted.masquerade.len(),
            host_ports = wanted.host_ports.len(),
            opened = wanted.opened.len(),
            classes = wanted.classes.len(),
            "rules set"
        );
        self.rules = Some(wanted);
        // A table that cannot be listed is not watched.
        self.watched_rules = Watched::of(contents)
            .inspect_err(|error| tracing::warn!(%error, "the table of nf_tables is not watched"))
            .ok();
        Ok(())
    }

    fn wanted(&self) -> Rules {
        let ports = || self.registry.with_rules().map(|attachment| &attachment.port);
        // Each prefix of a network once, before it is read.
        let masquerade: BTreeSet<_> = ports().flat_map(masqueraded).collect();
        let rule = |(network, prefix): (&str, &str)| {
            Some(MasqueradeRule { network: network.to_owned(), prefix: prefix.parse().ok()? })
        };
        let by_programs = self.registry.with_rules().filter(|attachment| !attachment.opened);
        Rules {
            masquerade: masquerade.into_iter().filter_map(rule).collect(),
            unmasqueraded: unmasqueraded(ports()),
            host_ports: by_programs.map(|attachment| &attachment.port).flat_map(host_ports).collect(),
            opened: self.registry.with_rules().flat_map(opened_ports).collect(),
            carries: self.heeding.opening.carries(),
            classes: self.claimed_sources(),
        }
    }
}

/// The prefixes of a port whose packets get the node's address, each with its network's name.
fn masqueraded(port: &BridgePort) -> impl Iterator<Item = (&str, &str)> {
    let network = port.key.network.as_str();
    port.masquerade.iter().map(move |prefix| (network, prefix.as_str()))
}

/// Goes without what the kernel cannot do: without its SCTP rules the programs still translate packets from outside, without the classes
/// what is routed has no guarantee, and containers are attached all the same.
fn replace(wanted: &Rules) -> Result<Committed, NftError> {
    let replaced = nft::replace(wanted);
    let Err(error) = &replaced else { return replaced };
    // Who opens host ports is decided first.
    if !wanted.opened.is_empty() && error.is_lack() {
        return replaced;
    }
    if !wanted.classes.is_empty() {
        tracing::warn!(%error, "traffic of claims that the kernel routes is not told apart");
        return replace(&Rules { classes: BTreeMap::new(), ..wanted.clone() });
    }
    if wanted.host_ports.is_empty() || !error.is_lack() {
        return replaced;
    }
    tracing::warn!(%error, "the node's own SCTP sockets do not reach host ports");
    nft::replace(&Rules { host_ports: BTreeSet::new(), ..wanted.clone() })
}

/// Rules for host ports of the node's own sockets that no program translates (SCTP).
fn host_ports(port: &BridgePort) -> impl Iterator<Item = HostPortRule> {
    let mappings = port.mappings.iter().filter(|mapping| mapping.protocol == Protocol::Sctp);
    mappings.flat_map(move |mapping| {
        let families = [IpAddr::is_ipv4, IpAddr::is_ipv6];
        families.into_iter().filter_map(move |is_of| host_port(port, mapping, is_of))
    })
}

/// The rule of one family, where the mapping and the container have it.
fn host_port(port: &BridgePort, mapping: &PortMapping, is_of: fn(&IpAddr) -> bool) -> Option<HostPortRule> {
    let PortMapping { host_port, container_port, .. } = *mapping;
    let ip = port.ips.iter().copied().find(is_of)?;
    let host_ip = mapping.address();
    let is_reached = mapping.is_of_family(ip) && host_ip.is_none_or(|host| !host.is_loopback());
    is_reached.then(|| HostPortRule {
        network: port.key.network.clone(),
        host_ip,
        host_port,
        to: SocketAddr::new(ip, container_port),
    })
}

/// Waits in the background until the kernel has freed the replaced rules.
fn settle(committed: Committed, expedited: Expedited) {
    let work = move || {
        drop(committed);
        drop(expedited);
    };
    if let Err(error) = thread::Builder::new().name("settle".into()).spawn(work) {
        tracing::warn!(%error, "cannot start a thread to free the old rules");
    }
}
