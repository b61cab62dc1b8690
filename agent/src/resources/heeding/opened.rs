//! Host ports: where others have rules that what comes to them would meet, the kernel opens their connections and carries them, by rules of ours behind others'.
//!
//! It changes without a loss. What the programs have opened they carry to its end, for the mapping stays in `MAPPINGS`. What the kernel has opened connection
//! tracking translates to its end, as long as there is any chain of translations: one is kept until no such connection is left.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use shunt_agent_api::{BridgePort, PortMapping};
use shunt_netlink::netfilter::BaseChain;

use super::opening::Carried;
use crate::config::Filters;
use crate::datapath::encode::protocol_number;
use crate::failpoints;
use crate::kernel::KernelError;
use crate::nft::{self, Hidden, OpenedPort};
use crate::registry::Attachment;
use crate::resources::Node;
use crate::resources::external_rule::harmless::{Bridges, Reach};
use crate::resources::external_rule::hooks::{self, Crossed};

impl Node {
    /// Whether the kernel opens a port's host ports.
    pub(crate) fn heeds_host_ports(&self, port: &BridgePort) -> bool {
        !self.heeding.opening.is_refused(failpoints::now()) && self.asks_for_host_ports(port)
    }

    /// Whether the kernel opens the host ports of a port that changes. It does as long as it did: the programs take over with a later look.
    pub(crate) fn opens_next(&self, port: &BridgePort, known: &Attachment) -> bool {
        self.heeds_host_ports(port) || known.opened && !port.mappings.is_empty()
    }

    /// Whether others' rules are asked who may use them, if the kernel can.
    pub(super) fn asks_for_host_ports(&self, port: &BridgePort) -> bool {
        let opening = &self.heeding.opening;
        let is_heeded = match self.heeding.mode_of(port.bridge.index, port.service.filters) {
            Filters::Bypass => false,
            Filters::Auto => !opening.by.is_empty(),
            Filters::Heed => true,
        };
        opening.is_asked && is_heeded && port.is_bridged() && !port.mappings.is_empty()
    }

    /// Whether the kernel opens any.
    pub(crate) fn opens_host_ports(&self) -> bool {
        self.registry.has_opened()
    }

    /// Takes over what an earlier agent has had the kernel open, as the programs know it: our table may have been flushed since, and connections that the kernel has
    /// led need it. Others change at the first tick, the rules before the host ports.
    pub(super) fn find_who_opens(&mut self) {
        let keeps = nft::keeps_translating().unwrap_or_default();
        let ports: Vec<Attachment> = self.registry.attachments().cloned().collect();
        for attachment in ports {
            let is_known = self.datapath.are_heeded(&attachment);
            let opened = is_known.unwrap_or_else(|| keeps && self.heeds_host_ports(&attachment.port));
            self.registry.insert(Attachment { opened, ..attachment });
        }
        self.heeding.opening.carried = (keeps || self.opens_host_ports()).then(Carried::now);
    }

    /// Decides by `chains` whether others have rules that what comes to host ports would meet. Returns those that translated packets meet.
    pub(super) fn find_rules_for_translated(
        &mut self,
        generation: Option<u32>,
        chains: &[BaseChain],
        crossed: &Crossed,
    ) -> Vec<BaseChain> {
        let opening = &mut self.heeding.opening;
        if opening.is_asked {
            let met = hooks::met_by_host_ports(chains, crossed);
            // What comes to host ports passes by any interface.
            opening.harms.read(generation, &met, &Bridges::default());
            // Answers go to any address.
            let harmful = opening.harms.met_in(&Reach::anywhere());
            opening.by = hooks::bypassed_of(&harmful, crossed).host_ports;
        }
        hooks::met_by_translated(chains, crossed).into_iter().cloned().collect()
    }

    /// Has the kernel open what it is to open, and the programs the rest.
    pub(super) fn change_who_opens(&mut self) -> Result<(), KernelError> {
        self.hear_of_connections();
        let others = self.opened_otherwise();
        let (begun, ended): (Vec<_>, Vec<_>) = others.into_iter().partition(|attachment| !attachment.opened);
        let ended = self.ready_to_change(ended);
        self.end_opening(ended)?;
        self.begin_opening(begun)?;
        self.look_for_carried();
        Ok(())
    }

    /// The attachments whose host ports somebody else is to open.
    fn opened_otherwise(&self) -> Vec<Attachment> {
        if !self.registry.has_mapped() && !self.registry.has_opened() {
            return Vec::new();
        }
        let is_other = |it: &&Attachment| it.opened != self.heeds_host_ports(&it.port);
        self.registry.attachments().filter(is_other).cloned().collect()
    }

    /// The kernel can before it has to.
    fn begin_opening(&mut self, ports: Vec<Attachment>) -> Result<(), KernelError> {
        if ports.is_empty() {
            return Ok(());
        }
        for attachment in &ports {
            self.registry.insert(Attachment { opened: true, ..attachment.clone() });
        }
        if let Err(error) = self.set_rules() {
            self.heeding.opening.refuse(error.to_string(), failpoints::now());
            ports.into_iter().for_each(|attachment| self.registry.insert(attachment));
            return Ok(());
        }
        // Where the kernel cannot, the programs still do.
        let begun = ports.iter().filter_map(|it| self.registry.get(&it.port.key)).filter(|it| it.opened);
        let begun: Vec<Attachment> = begun.cloned().collect();
        for attachment in &begun {
            self.datapath.write_mappings(attachment)?;
            self.datapath.rewrite_port(attachment)?;
        }
        if !begun.is_empty() {
            tracing::info!(ports = begun.len(), "the kernel opens host ports, as others have rules for them");
        }
        Ok(())
    }

    /// The programs open before the kernel does not.
    fn end_opening(&mut self, ports: Vec<Attachment>) -> Result<(), KernelError> {
        if ports.is_empty() {
            return Ok(());
        }
        self.heeding.opening.carried = Some(Carried::now());
        for attachment in &ports {
            let to = Attachment { opened: false, ..attachment.clone() };
            self.datapath.write_mappings(&to)?;
            self.datapath.rewrite_port(&to)?;
            self.registry.insert(to);
        }
        self.claim_the_last(&ports);
        if let Err(error) = self.set_rules() {
            tracing::warn!(%error, "cannot remove rules that open host ports");
        }
        tracing::info!(ports = ports.len(), "the programs open host ports");
        Ok(())
    }
}

/// The host ports of a port that the kernel opens.
pub(crate) fn opened_ports(attachment: &Attachment) -> impl Iterator<Item = OpenedPort> {
    let mappings = attachment.port.mappings.iter().filter(|_| attachment.opened);
    mappings.flat_map(move |mapping| {
        // The kernel leads nothing from the loopback to a container.
        let host_ip = mapping.address();
        let ips = attachment.mapped_ips(mapping).filter(move |_| host_ip.is_none_or(|ip| !ip.is_loopback()));
        ips.map(move |ip| OpenedPort {
            host_ip,
            protocol: protocol_number(mapping.protocol),
            host_port: mapping.host_port,
            to: SocketAddr::new(ip, mapping.container_port),
            hidden: hidden(&attachment.port, mapping, ip),
        })
    })
}

/// Which clients the container sees as the node.
fn hidden(port: &BridgePort, mapping: &PortMapping, ip: IpAddr) -> Hidden {
    let subnets = port.service.gateways.iter().filter_map(|text| text.parse::<IpNet>().ok());
    let subnet = subnets.filter(|subnet| subnet.contains(&ip)).max_by_key(IpNet::prefix_len);
    match mapping {
        PortMapping { keeps_source: true, .. } => Hidden::Itself,
        PortMapping { masquerade: true, .. } => Hidden::Everyone,
        _ => subnet.map_or(Hidden::Itself, Hidden::Neighbors),
    }
}
