//! What is told, and under which name: Prometheus' conventions (base units, `_total` for what only grows).
//!
//! Rates are bytes a second here, as Prometheus wants its units, and bits a second everywhere else.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use shunt_agent_api::{
    AgentStatus, Allocation, BridgeUplinkReport, CapacityReport, DropReport, MappingReport, PoolReport,
    PortReport, Traffic, UplinkReport,
};

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
}

/// The snapshot in the OpenMetrics text format.
///
/// # Errors
/// Never, unless the encoder does.
pub fn text(snapshot: &Snapshot) -> Result<String, fmt::Error> {
    let mut page = Page(Registry::with_prefix("shunt"));
    page.agent(&snapshot.status);
    page.bridge_uplinks(&snapshot.status.bridge_uplinks);
    page.ports(&snapshot.ports);
    page.mappings(&snapshot.mappings);
    page.drops(&snapshot.drops);
    page.capacity(&snapshot.capacity);
    let mut text = String::new();
    encode(&mut text, &page.0)?;
    Ok(text)
}

type Labels<const N: usize> = [(&'static str, String); N];

struct Page(Registry);

impl Page {
    fn number(&mut self, name: &str, help: &str, value: u64) {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        self.0.register(name, help, gauge);
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) {
        let family = Family::<Labels<N>, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.0.register(name, help, family);
    }

    /// The encoder adds `_total` to the name.
    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) {
        let family = Family::<Labels<N>, Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.0.register(name, help, family);
    }

    fn agent(&mut self, status: &AgentStatus) {
        let build = [("version", status.version.clone()), ("abi", status.abi.to_string())];
        self.0.register("build", "The agent's version, and that of its maps", Info::new(build));
        self.number("agent_healthy", "Whether nothing is wrong", status.healthy.into());
        self.number("agent_ready", "Whether an ADD would work", status.obstacles.is_empty().into());
        self.number("agent_reasons", "Reasons why an ADD would not work", status.reasons.len() as u64);
        self.number("agent_warnings", "Warnings, as the status has them", status.warnings.len() as u64);
        self.number("attachments", "Attachments", status.attachments as u64);
        let repairs = Counter::<u64>::default();
        repairs.inc_by(status.repairs);
        self.0.register("repairs", "Repairs of what others had altered", repairs);
        let evictions = Counter::<u64>::default();
        evictions.inc_by(status.flow_evictions);
        let help = "Entries of translated connections, two for each, that made room for others";
        self.0.register("flow_evictions", help, evictions);
        let programs = status.programs.iter().map(|program| {
            let mode = format!("{:?}", program.mode).to_lowercase();
            ([("program", program.name.clone()), ("mode", mode)], 1.0)
        });
        self.gauges("programs", "Programs on interfaces", programs);
    }

    fn bridge_uplinks(&mut self, uplinks: &[BridgeUplinkReport]) {
        type Figure = fn(&Traffic) -> u64;
        let of = |uplink: &BridgeUplinkReport| {
            [("uplink", uplink.name.clone()), ("bridge", uplink.bridge.clone())]
        };
        let ways = || {
            let both = |uplink| [(of(uplink), "from", uplink.from), (of(uplink), "to", uplink.to)];
            uplinks.iter().flat_map(both)
        };
        let paths: [(&'static str, Figure); 2] =
            [("fast", |traffic| traffic.fast), ("kernel", |traffic| traffic.kernel)];
        let packets = ways().flat_map(|([uplink, bridge], way, traffic)| {
            paths.map(|(path, figure)| {
                let labels = [("direction", way.to_owned()), ("path", path.to_owned())];
                let [direction, path] = labels;
                ([uplink.clone(), bridge.clone(), direction, path], figure(&traffic))
            })
        });
        self.counters("bridge_uplink_packets", "Packets of bridges' uplinks, by path", packets);
        let bytes = ways().map(|([uplink, bridge], way, traffic)| {
            ([uplink, bridge, ("direction", way.to_owned())], traffic.bytes)
        });
        self.counters("bridge_uplink_bytes", "Bytes of bridges' uplinks, Ethernet headers included", bytes);
        let stations = uplinks.iter().map(|uplink| (of(uplink), uplink.stations as f64));
        self.gauges("bridge_uplink_stations", "Stations known beyond bridges' uplinks", stations);
        let refused = uplinks.iter().map(|uplink| (of(uplink), uplink.refused));
        self.counters("bridge_uplink_unlearned_stations", "Stations not learned, for want of room", refused);
    }

    fn ports(&mut self, ports: &[PortReport]) {
        type Figure = fn(&Traffic) -> u64;
        let paths: [(&'static str, Figure); 2] =
            [("fast", |traffic| traffic.fast), ("kernel", |traffic| traffic.kernel)];
        let packets = each_way(ports).flat_map(|(labels, traffic)| {
            let [network, container, interface, host, direction] = labels;
            paths.map(|(path, figure)| {
                let (network, container) = (network.clone(), container.clone());
                let (interface, host) = (interface.clone(), host.clone());
                let labels =
                    [network, container, interface, host, direction.clone(), ("path", path.to_owned())];
                (labels, figure(traffic))
            })
        });
        self.counters("port_packets", "Packets forwarded (a GSO packet is one), by path", packets);
        let bytes = each_way(ports).map(|(labels, traffic)| (labels, traffic.bytes));
        self.counters("port_bytes", "Bytes forwarded, Ethernet headers included", bytes);
        let dropped = each_way(ports).map(|(labels, traffic)| (labels, traffic.dropped));
        self.counters("port_dropped_packets", "Packets dropped by a program", dropped);
        let limits = ports.iter().flat_map(|port| {
            let both = [("from", port.limits.egress), ("to", port.limits.ingress)];
            both.into_iter().filter_map(|(way, rate)| Some((directed(port, way), bytes_of(rate?))))
        });
        self.gauges("port_limit_bytes_per_second", "Configured limits", limits);
    }

    fn mappings(&mut self, mappings: &[MappingReport]) {
        let flows = mappings.iter().map(|mapping| mapping.connections).sum();
        self.number("flows", "Translated connections", flows);
        let labels = |mapping: &MappingReport| {
            let address = mapping.host_ip.map(|ip| ip.to_string()).unwrap_or_default();
            [
                ("network", mapping.network.clone()),
                ("container", mapping.container.clone()),
                ("protocol", mapping.proto.to_string()),
                ("host_address", address),
                ("host_port", mapping.host_port.to_string()),
            ]
        };
        let connections = mappings.iter().map(|mapping| (labels(mapping), mapping.connections as f64));
        self.gauges("mapping_flows", "Translated connections, by host port", connections);
        let volumes = || {
            mappings.iter().flat_map(|mapping| {
                [("from", mapping.from), ("to", mapping.to)].map(|(way, volume)| {
                    let [network, container, protocol, address, port] = labels(mapping);
                    ([network, container, protocol, address, port, ("direction", way.to_owned())], volume)
                })
            })
        };
        let packets = volumes().map(|(labels, volume)| (labels, volume.packets));
        self.counters("mapping_packets", "Packets translated (a GSO packet is one), by host port", packets);
        let bytes = volumes().map(|(labels, volume)| (labels, volume.bytes));
        self.counters("mapping_bytes", "Bytes translated, Ethernet headers included, by host port", bytes);
    }

    fn drops(&mut self, drops: &[DropReport]) {
        let labels = |drop: &DropReport| {
            [
                ("host_interface", drop.port.clone()),
                ("stage", drop.stage.clone()),
                ("reason", drop.reason.clone()),
            ]
        };
        let packets = drops.iter().map(|drop| (labels(drop), drop.packets));
        self.counters("dropped_packets", "Packets dropped, by reason", packets);
        let bytes = drops.iter().map(|drop| (labels(drop), drop.bytes));
        self.counters("dropped_bytes", "Bytes dropped, by reason", bytes);
    }

    fn capacity(&mut self, capacity: &CapacityReport) {
        type Figure = fn(&PoolReport) -> u64;
        let uplinks = || capacity.uplinks.iter();
        let of = |uplink: &UplinkReport| [("uplink", uplink.name.clone())];
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
                    let labels = [("uplink", uplink.name.clone()), ("direction", way.to_owned())];
                    (labels, bytes_of(figure(pool)))
                })
            });
            self.gauges(name, help, values);
        }
        let allocations = uplinks().flat_map(|uplink| {
            uplink.allocations.iter().flat_map(|allocation| allocated(&uplink.name, allocation))
        });
        self.gauges("allocation_bytes_per_second", "What each attachment has been given", allocations);
        // The same for all uplinks.
        if let Some(slots) = uplinks().next().map(|uplink| uplink.slots) {
            self.number("slots", "Attachments and bridges that the node can serve", slots.total);
            self.number("slots_free", "What is left of them", slots.free);
        }
    }
}

/// Both directions of every port, with their labels.
fn each_way(ports: &[PortReport]) -> impl Iterator<Item = (Labels<5>, &Traffic)> {
    ports.iter().flat_map(|port| {
        [("from", &port.from), ("to", &port.to)].map(|(way, traffic)| (directed(port, way), traffic))
    })
}

/// A port's labels, and which way: from the container or to it.
fn directed(port: &PortReport, way: &str) -> Labels<5> {
    [
        ("network", port.network.clone()),
        ("container", port.container.clone()),
        ("interface", port.ifname.clone()),
        ("host_interface", port.host_ifname.clone()),
        ("direction", way.to_owned()),
    ]
}

fn allocated(uplink: &str, allocation: &Allocation) -> [(Labels<5>, f64); 2] {
    [("egress", allocation.egress), ("ingress", allocation.ingress)].map(|(way, rate)| {
        let labels = [
            ("uplink", uplink.to_owned()),
            ("network", allocation.network.clone()),
            ("container", allocation.container.clone()),
            ("interface", allocation.ifname.clone()),
            ("direction", way.to_owned()),
        ];
        (labels, bytes_of(rate))
    })
}

/// Bits a second as bytes a second.
fn bytes_of(rate: u64) -> f64 {
    rate as f64 / 8.0
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
