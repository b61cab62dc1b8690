//! What is told, and under which name: Prometheus' conventions (base units, `_total` for what only grows).
//!
//! Rates are bytes a second here, as Prometheus wants its units, and bits a second everywhere else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use shunt_agent_api::{
    AgentStatus, BridgeUplinkReport, CapacityReport, DropReport, MappingReport, PoolReport, PortReport,
    Traffic, UplinkReport, Volume,
};

use super::host_ports::Volumes;
use super::labels::{Grouping, Labels};
use crate::config::MetricsLabels;
use crate::departed::{Carried, Departed};

/// What the agent says of itself at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// How it is.
    pub status: AgentStatus,
    /// What its ports carry.
    pub ports: Vec<PortReport>,
    /// Its host ports, with the connections that came by them.
    pub mappings: Vec<MappingReport>,
    /// What was dropped.
    pub drops: Vec<DropReport>,
    /// What is left.
    pub capacity: CapacityReport,
    /// Of whom it tells.
    pub labels: MetricsLabels,
    /// What containers that are gone have carried, where figures are summed.
    pub departed: Departed,
    /// What came by host ports that are gone, by namespace, where figures are summed.
    pub gone_host_ports: BTreeMap<String, [Volume; 2]>,
}

/// The snapshot in the OpenMetrics text format.
///
/// # Errors
/// Never, unless the encoder does.
pub fn text(snapshot: &Snapshot) -> Result<String, fmt::Error> {
    let mut page = Page { text: String::new(), written: Ok(()) };
    page.agent(&snapshot.status);
    page.bridge_uplinks(&snapshot.status.bridge_uplinks);
    let grouping = Grouping::new(snapshot.labels, &snapshot.ports);
    page.ports(&snapshot.ports, &grouping, &gone(snapshot));
    page.mappings(&snapshot.mappings, &grouping, &snapshot.gone_host_ports);
    page.drops(&snapshot.drops, &grouping, &gone(snapshot));
    page.capacity(&snapshot.capacity, &grouping);
    page.written?;
    encode_eof(&mut page.text)?;
    Ok(page.text)
}

/// What those have carried that are gone, each with its namespace; of a sum over the node those of namespaces that made room, too.
fn gone(snapshot: &Snapshot) -> Vec<(&str, &Carried)> {
    match snapshot.labels {
        MetricsLabels::Pod => Vec::new(),
        MetricsLabels::Namespace => snapshot.departed.namespaces().collect(),
        MetricsLabels::Node => snapshot.departed.all().map(|carried| ("", carried)).collect(),
    }
}

/// A figure of one direction.
type Figure = fn(&Traffic) -> u64;

const WAYS: [&str; 2] = ["from", "to"];

const PATHS: [(&str, Figure); 2] = [("fast", |traffic| traffic.fast), ("kernel", |traffic| traffic.kernel)];

/// What has been written, and whether the encoder has taken all of it.
struct Page {
    text: String,
    written: fmt::Result,
}

impl Page {
    /// Each metric is written at once: those of thousands of ports would take several times the room of their text.
    fn write(&mut self, name: &str, help: &str, metric: impl Metric) {
        let mut registry = Registry::with_prefix("shunt");
        registry.register(name, help, metric);
        self.written = self.written.and_then(|()| encode_registry(&mut self.text, &registry));
    }

    fn number(&mut self, name: &str, help: &str, value: u64) {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        self.write(name, help, gauge);
    }

    /// Values with the same labels are summed.
    fn gauges(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.write(name, help, family);
    }

    /// The same of what only grows. The encoder adds `_total` to the name.
    fn counters(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.write(name, help, family);
    }

    fn agent(&mut self, status: &AgentStatus) {
        let build = [("version", status.version.clone()), ("abi", status.abi.to_string())];
        self.write("build", "The agent's version, and that of its maps", Info::new(build));
        self.number("agent_healthy", "Whether nothing is wrong", status.healthy.into());
        self.number("agent_ready", "Whether an ADD would work", status.obstacles.is_empty().into());
        self.number("agent_reasons", "Reasons why it is not healthy", status.reasons.len() as u64);
        self.number("agent_warnings", "Warnings, as the status has them", status.warnings.len() as u64);
        self.number("attachments", "Attachments", status.attachments as u64);
        let repairs = Counter::<u64>::default();
        repairs.inc_by(status.repairs);
        self.write("repairs", "Repairs of what others had altered", repairs);
        self.number("unrepaired", "What was altered and cannot be put back", status.unrepaired);
        let in_use = Gauge::<f64, AtomicU64>::default();
        in_use.set(f64::from(status.flows_in_use) / 100.0);
        let help = "How much of the room for translated connections is in use, 0 to 1";
        self.write("flow_room_used_ratio", help, in_use);
        let evictions = Counter::<u64>::default();
        evictions.inc_by(status.flow_evictions);
        let help = "Entries of translated connections, two for each, that made room for others";
        self.write("flow_evictions", help, evictions);
        let programs = status.programs.iter().map(|program| {
            let mode = format!("{:?}", program.mode).to_lowercase();
            (vec![("program", program.name.clone()), ("mode", mode)], 1.0)
        });
        self.gauges("programs", "Programs on interfaces", programs);
    }

    fn bridge_uplinks<'a>(&mut self, uplinks: &'a [BridgeUplinkReport]) {
        let of = |uplink: &BridgeUplinkReport| {
            vec![("uplink", uplink.name.clone()), ("bridge", uplink.bridge.clone())]
        };
        let with = |uplink: &BridgeUplinkReport, more: &[(&'static str, &str)]| {
            let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
            of(uplink).into_iter().chain(more).collect::<Labels>()
        };
        let ways = || {
            let both =
                |uplink: &'a BridgeUplinkReport| [(uplink, "from", uplink.from), (uplink, "to", uplink.to)];
            uplinks.iter().flat_map(both)
        };
        let packets = ways().flat_map(|(uplink, way, traffic)| {
            PATHS
                .map(|(path, figure)| (with(uplink, &[("direction", way), ("path", path)]), figure(&traffic)))
        });
        self.counters("bridge_uplink_packets", "Packets of bridges' uplinks, by path", packets);
        let bytes = ways().map(|(uplink, way, traffic)| (with(uplink, &[("direction", way)]), traffic.bytes));
        self.counters("bridge_uplink_bytes", "Bytes of bridges' uplinks, Ethernet headers included", bytes);
        let stations = uplinks.iter().map(|uplink| (of(uplink), uplink.stations as f64));
        self.gauges("bridge_uplink_stations", "Stations known beyond bridges' uplinks", stations);
        let refused = uplinks.iter().map(|uplink| (of(uplink), uplink.refused));
        self.counters("bridge_uplink_unlearned_stations", "Stations not learned, for want of room", refused);
    }

    fn ports(&mut self, ports: &[PortReport], grouping: &Grouping<'_>, gone: &[(&str, &Carried)]) {
        // Every figure of every port, and of those that are gone.
        let figures = |more: &[(&'static str, &str)], way, figure: Figure| {
            let more: Vec<_> = [("direction", way)].into_iter().chain(more.iter().copied()).collect();
            let living = ports.iter().map(|port| {
                (grouping.of_port(port, &more), figure(if way == "from" { &port.from } else { &port.to }))
            });
            let gone = gone.iter().map(|(namespace, carried)| {
                let traffic = if way == "from" { &carried.from } else { &carried.to };
                (grouping.of_namespace(namespace, &more), figure(traffic))
            });
            living.chain(gone).collect::<Vec<_>>()
        };
        let packets = WAYS.into_iter().flat_map(|way| {
            PATHS.into_iter().flat_map(move |(path, figure)| figures(&[("path", path)], way, figure))
        });
        self.counters("port_packets", "Packets forwarded (a GSO packet is one), by path", packets);
        let bytes = WAYS.into_iter().flat_map(|way| figures(&[], way, |traffic| traffic.bytes));
        self.counters("port_bytes", "Bytes forwarded, Ethernet headers included", bytes);
        let dropped = WAYS.into_iter().flat_map(|way| figures(&[], way, |traffic| traffic.dropped));
        self.counters("port_dropped_packets", "Packets dropped by a program", dropped);
        let limits = ports.iter().flat_map(|port| {
            let both = [("from", port.limits.egress), ("to", port.limits.ingress)];
            both.into_iter().filter_map(|(way, rate)| {
                Some((grouping.of_port(port, &[("direction", way)]), bytes_of(rate?)))
            })
        });
        self.gauges("port_limit_bytes_per_second", "Configured limits", limits);
    }

    fn mappings(
        &mut self,
        mappings: &[MappingReport],
        grouping: &Grouping<'_>,
        gone: &BTreeMap<String, Volumes>,
    ) {
        let flows = mappings.iter().map(|mapping| mapping.connections).sum();
        self.number("flows", "Translated connections", flows);
        let connections =
            mappings.iter().map(|mapping| (grouping.of_mapping(mapping, &[]), mapping.connections as f64));
        self.gauges("mapping_flows", "Translated connections, by host port", connections);
        let volumes: Vec<(Labels, Volume)> = {
            let living = mappings.iter().flat_map(|mapping| {
                let both = [("from", mapping.from), ("to", mapping.to)];
                both.map(|(way, volume)| (grouping.of_mapping(mapping, &[("direction", way)]), volume))
            });
            let gone = gone.iter().flat_map(|(namespace, [from, to])| {
                let both = [("from", *from), ("to", *to)];
                both.map(|(way, volume)| (grouping.of_namespace(namespace, &[("direction", way)]), volume))
            });
            living.chain(gone).collect()
        };
        let packets = volumes.iter().map(|(labels, volume)| (labels.clone(), volume.packets));
        self.counters("mapping_packets", "Packets translated (a GSO packet is one), by host port", packets);
        let bytes = volumes.iter().map(|(labels, volume)| (labels.clone(), volume.bytes));
        self.counters("mapping_bytes", "Bytes translated, Ethernet headers included, by host port", bytes);
    }

    fn drops(&mut self, drops: &[DropReport], grouping: &Grouping<'_>, gone: &[(&str, &Carried)]) {
        let mut figures: Vec<_> =
            drops.iter().map(|drop| (grouping.of_drop(drop), drop.packets, drop.bytes)).collect();
        for (namespace, carried) in gone {
            figures.extend(carried.drops.iter().map(|drop| {
                let more = [("stage", &*drop.stage), ("reason", &*drop.reason)];
                (grouping.of_namespace(namespace, &more), drop.packets, drop.bytes)
            }));
        }
        let packets = figures.iter().map(|(labels, packets, _)| (labels.clone(), *packets));
        self.counters("dropped_packets", "Packets dropped, by reason", packets);
        let bytes = figures.iter().map(|(labels, _, bytes)| (labels.clone(), *bytes));
        self.counters("dropped_bytes", "Bytes dropped, by reason", bytes);
    }

    fn capacity(&mut self, capacity: &CapacityReport, grouping: &Grouping<'_>) {
        type Figure = fn(&PoolReport) -> u64;
        let uplinks = || capacity.uplinks.iter();
        let of = |uplink: &UplinkReport| vec![("uplink", uplink.name.clone())];
        self.gauges(
            "uplink_speed_bytes_per_second",
            "What the link says of its speed; 0 where it says nothing",
            uplinks().map(|uplink| (of(uplink), bytes_of(uplink.speed))),
        );
        let figures: [(&str, &str, Figure); 4] = [
            ("uplink_capacity_bytes_per_second", "What can be handed out", |pool| pool.total),
            ("uplink_reserved_bytes_per_second", "What is kept for the node", |pool| pool.reserved),
            ("uplink_allocated_bytes_per_second", "What has been handed out", |pool| pool.allocated),
            ("uplink_free_bytes_per_second", "What is left", |pool| pool.free),
        ];
        for (name, help, figure) in figures {
            let values = uplinks().flat_map(|uplink| {
                let both = [("egress", &uplink.egress), ("ingress", &uplink.ingress)];
                both.map(|(way, pool)| {
                    let labels = vec![("uplink", uplink.name.clone()), ("direction", way.to_owned())];
                    (labels, bytes_of(figure(pool)))
                })
            });
            self.gauges(name, help, values);
        }
        let allocations = uplinks().flat_map(|uplink| {
            uplink.allocations.iter().flat_map(|one| {
                let both = [("egress", one.egress), ("ingress", one.ingress)];
                both.map(|(way, rate)| (grouping.of_allocation(&uplink.name, one, way), bytes_of(rate)))
            })
        });
        self.gauges("allocation_bytes_per_second", "What each attachment has been given", allocations);
        // The same for all uplinks.
        if let Some(slots) = uplinks().next().map(|uplink| uplink.slots) {
            self.number("slots", "Attachments and bridges that the node can serve", slots.total);
            self.number("slots_free", "What is left of them", slots.free);
        }
    }
}

/// Bits a second as bytes a second.
fn bytes_of(rate: u64) -> f64 {
    rate as f64 / 8.0
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
pub(super) mod tests;
