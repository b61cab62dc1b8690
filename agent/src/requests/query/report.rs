//! Builds the agent's reports.

use std::collections::HashMap;

use ipnet::IpNet;
use shunt_agent_api::VlanGatewayReport;
use shunt_agent_api::{
    AgentStatus, BridgePort, BridgeUplinkReport, DropReport, FdbEntry, FdbKind, Limits, Pod, PortReport,
    ProgramMode, ProgramReport, VlanReport,
};
use shunt_dataplane::DropReason;
use shunt_dataplane::abi::vlan::VID_ANY;
use shunt_dataplane::abi::{ABI_VERSION, STATION_HOST};

use crate::datapath::attach::hook::Hook;
use crate::datapath::attach::xdp;
use crate::datapath::in_map;
use crate::datapath::programs;
use crate::mac;
use crate::registry::Attachment;
use crate::registry::Place;
use crate::registry::Uplink;
use crate::registry::VlanGateway;
use crate::resources::departed::both_ways;
use crate::resources::{Node, Refusal};

impl Node {
    /// [`AgentStatus`]. Healthy means that nothing is wrong; ready, that an ADD would work.
    pub(crate) fn status(&mut self) -> AgentStatus {
        let (exhausted, shortages) = self.capacity_remarks();
        let hooks = self.registry.attachments().flat_map(programs::of_port);
        let hooks = hooks.chain(self.registry.bridges().map(programs::of_bridge));
        let hooks = hooks.chain(self.registry.trunks().map(programs::of_trunk));
        let hooks = hooks.chain(self.registry.uplinks.values().flat_map(programs::of_uplink));
        let hooks =
            hooks.chain(self.registry.gateways.values().flat_map(|gateway| programs::of_port(&gateway.port)));
        let hooks = hooks.chain(self.nat_ingress_hooks());
        let reasons: Vec<_> = self.reasons().into_iter().chain(exhausted.iter().cloned()).collect();
        AgentStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            abi: ABI_VERSION,
            healthy: reasons.is_empty(),
            reasons,
            obstacles: self.obstacles(),
            sold_out: exhausted,
            warnings: self.known_warnings().into_iter().chain(shortages).collect(),
            attachments: self.registry.len(),
            repairs: self.repairs.count,
            unrepaired: self.unrepaired(),
            flows_in_use: self.flows_in_use(),
            flow_evictions: self.flow_evictions(),
            grace_periods: Some(self.kernel.grace_periods().report()),
            filters: Some(Box::new(self.filters())),
            programs: hooks
                .map(|hook| self.program_report(&hook))
                .chain(self.registry.uplinks.values().filter_map(|uplink| self.native_report(uplink)))
                .chain(self.sockets.reports())
                .collect(),
            uplinks: self.ledger.uplinks().map(str::to_owned).collect(),
            bridge_uplinks: self.registry.uplinks.values().map(|it| self.bridge_uplink_report(it)).collect(),
            relocations: self.relocation_reports(),
            vlan_gateways: self.gateway_reports(),
        }
    }

    /// Unreadable counters are reported as zero.
    fn bridge_uplink_report(&self, uplink: &Uplink) -> BridgeUplinkReport {
        let (from, to) = both_ways(self.datapath.maps.counters(uplink.slot).unwrap_or_default());
        let known = self.datapath.learning(uplink).ok().flatten().unwrap_or_default();
        BridgeUplinkReport {
            name: uplink.link.name.clone(),
            bridge: uplink.bridge.name.clone(),
            blocked: uplink.blocked,
            stations: known.held,
            refused: known.refused,
            moved: known.moved,
            from,
            to,
        }
    }

    pub(crate) fn program_report(&self, hook: &Hook) -> ProgramReport {
        ProgramReport {
            name: hook.program.name().to_owned(),
            ifname: hook.ifname.clone(),
            mode: self.datapath.mode(hook),
            id: self.datapath.program_id(hook),
        }
    }

    fn native_report(&self, uplink: &Uplink) -> Option<ProgramReport> {
        let id = self.datapath.native(uplink)?;
        let (name, ifname) = (xdp::NAME.to_owned(), uplink.link.name.clone());
        Some(ProgramReport { name, ifname, mode: ProgramMode::Xdp, id })
    }

    /// A [`PortReport`] per attachment, in the order of their keys.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub(crate) fn ports(&self) -> Result<Vec<PortReport>, Refusal> {
        self.registry.attachments().map(|attachment| self.port_report(attachment)).collect()
    }

    fn port_report(&self, attachment: &Attachment) -> Result<PortReport, Refusal> {
        let counters = self.datapath.maps.counters(attachment.slot).map_err(in_map("COUNTERS"))?;
        let (from, to) = both_ways(counters);
        let port = &attachment.port;
        let (namespace, pod) = Pod::names(port.pod.as_ref());
        Ok(PortReport {
            network: port.key.network.clone(),
            container: port.key.container.clone(),
            ifname: port.key.ifname.clone(),
            host_ifname: port.host.name.clone(),
            host_ifindex: port.host.index,
            mac: port.mac.clone(),
            ips: port.ips.clone(),
            vlan: vlan_report(port),
            restrictions: port.restrictions.names(),
            limits: Limits {
                ingress: port.bandwidth.ingress.map(|limit| limit.rate),
                egress: port.bandwidth.egress.map(|limit| limit.rate),
            },
            kernels_way: kernels_way(attachment),
            namespace,
            pod,
            pod_uid: port.pod.as_ref().map(|pod| pod.uid.clone()).unwrap_or_default(),
            from,
            to,
        })
    }

    /// A [`FdbEntry`] per station.
    ///
    /// # Errors
    /// The FDB cannot be read.
    pub(crate) fn fdb(&self) -> Result<Vec<FdbEntry>, Refusal> {
        let names = self.names();
        let name = |ifindex| names.get(&ifindex).cloned().unwrap_or_else(|| format!("ifindex {ifindex}"));
        let mut entries: Vec<_> = self
            .datapath
            .maps
            .stations
            .iter()
            .map(|entry| {
                let (key, station) = entry.map_err(in_map("FDB"))?;
                let port =
                    if station.flags & STATION_HOST == 0 { name(station.ifindex) } else { name(key.bridge) };
                Ok(FdbEntry {
                    bridge: name(key.bridge),
                    vid: if key.vid == VID_ANY { self.untagged_vid(station.ifindex) } else { key.vid },
                    mac: mac::format(key.mac),
                    port,
                    kind: FdbKind::Static,
                    age_seconds: 0,
                })
            })
            .collect::<Result<_, Refusal>>()?;
        entries.extend(self.learned_reports(name)?);
        entries.sort_by(|one, other| {
            (&one.bridge, one.vid, &one.mac).cmp(&(&other.bridge, other.vid, &other.mac))
        });
        Ok(entries)
    }

    /// The VLAN of a port's untagged frames, or else its first.
    fn untagged_vid(&self, ifindex: u32) -> u16 {
        if let Some(gateway) = self.registry.gateway_by_end(ifindex) {
            return gateway.vid();
        }
        let vlans = self.registry.by_host(ifindex).and_then(|known| known.port.restrictions.vlans.as_ref());
        vlans.and_then(|vlans| vlans.untagged.or(vlans.tagged.first().copied())).unwrap_or_default()
    }

    /// A [`DropReport`] per port and reason, most packets first.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub(crate) fn drops(&self) -> Result<Vec<DropReport>, Refusal> {
        let names = self.names();
        let mut drops: Vec<_> = self
            .datapath
            .maps
            .drops()
            .map_err(in_map("DROPS"))?
            .into_iter()
            .filter(|(_, count)| count.packets > 0)
            .map(|(key, count)| {
                let reason = DropReason::from_number(key.reason);
                DropReport {
                    stage: reason.map_or("unknown", |reason| reason.stage().name()).to_owned(),
                    reason: reason.map_or_else(|| key.reason.to_string(), |reason| reason.name().to_owned()),
                    port: names
                        .get(&key.ifindex)
                        .cloned()
                        .unwrap_or_else(|| format!("ifindex {}", key.ifindex)),
                    packets: count.packets,
                    bytes: count.bytes,
                }
            })
            .collect();
        drops.sort_by(|one, other| other.packets.cmp(&one.packets).then_with(|| one.port.cmp(&other.port)));
        Ok(drops)
    }

    /// A report per gateway. Unreadable counters are zero.
    pub(crate) fn gateway_reports(&self) -> Vec<VlanGatewayReport> {
        let report = |(place, it): (&Place, &VlanGateway)| {
            let (from, to) = both_ways(self.datapath.maps.counters(it.port.slot).unwrap_or_default());
            VlanGatewayReport {
                name: it.link.name.clone(),
                bridge: it.port.port.bridge.name.clone(),
                vlan: it.vid(),
                mac: it.port.port.mac.clone(),
                addresses: self.gateways_addresses(*place).iter().map(IpNet::to_string).collect(),
                from,
                to,
            }
        };
        self.registry.gateways.iter().map(report).collect()
    }

    /// Names of the interfaces with programs.
    pub(crate) fn names(&self) -> HashMap<u32, String> {
        let hosts = self.registry.attachments().map(|attachment| &attachment.port.host);
        let bridges = self.registry.bridges().map(|bridge| (bridge.link.index, bridge.link.name.clone()));
        let wires = self.nat_ingress.hooks.values().map(|hook| (hook.ifindex, hook.ifname.clone()));
        let uplinks = self.registry.uplinks.values().map(|uplink| &uplink.link);
        let links = hosts.chain(uplinks).map(|link| (link.index, link.name.clone()));
        // A gateway is shown by the name of the end with the addresses.
        let gateways = self.registry.gateways.values();
        let gateways = gateways.map(|it| (it.port.port.host.index, it.link.name.clone()));
        links.chain(bridges).chain(gateways).chain(wires).collect()
    }
}

/// Why a port's frames take the kernel's way.
fn kernels_way(attachment: &Attachment) -> Vec<String> {
    let filtered = attachment.external.filters.then(|| "other programs filter on its host end".to_owned());
    let heeded = attachment.heeded.then(|| "others' rules are asked for its flows".to_owned());
    filtered.into_iter().chain(heeded).chain(attachment.settings.reasons()).collect()
}

/// The VLANs of a port, or the one of a VLAN interface.
fn vlan_report(port: &BridgePort) -> VlanReport {
    match (&port.restrictions.vlans, port.vlan) {
        (Some(vlans), _) => {
            VlanReport { untagged: vlans.untagged.unwrap_or_default(), tagged: vlans.tagged.clone() }
        }
        (None, Some(vlan)) => VlanReport { untagged: vlan.id, tagged: Vec::new() },
        (None, None) => VlanReport::default(),
    }
}
