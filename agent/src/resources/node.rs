//! The node, as the agent keeps it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use shunt_agent_api::{ConfigReport, PoolReport};
use shunt_dataplane::abi::Port;
use shunt_netlink::link::Link;

use super::big_tcp::PacketSizing;
use super::bridge::{Gateways, Orphan};
use super::connection::table::Table;
use super::connection::{Sweeping, Tallies, handover};
use super::departed::KeptDeparted;
use super::events::Events;
use super::heeding::Heeded;
use super::host_port::{NatIngress, Sockets};
use super::kernel_flow::{Former, KernelFlows};
use super::lease::Leases;
use super::masquerade::Masquerade;
use super::port::Unfinished;
use super::repairs::Repairs;
use super::reverse_path::Filters;
use super::station::Learning;
use super::tracked::Tracker;
use super::unattached::UnattachedPorts;
use super::watching::Watching;
use crate::capacity::speed::Speeds;
use crate::capacity::{Ledger, XdpMode};
use crate::claims::{Claim, Claims};
use crate::config::{Admission, Config};
use crate::datapath::{Datapath, DatapathError, in_map};
use crate::kernel::{Kernel, KernelError, Shares};
use crate::nft::{Rules, Watched};
use crate::rcu::GracePeriods;
use crate::registry::Registry;
use crate::state::{Relocation, Store, Unreadable};

/// How many warnings are kept for the status.
const MAX_WARNINGS: usize = 64;

/// When entries and pins that are no attachment's are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swept {
    /// At the start.
    AtStart,
    /// Later: a container's programs on a link that is there go with the link, which a thread may be deleting.
    Meanwhile,
}

/// The namespace's links by ifindex.
pub(crate) type Links = HashMap<u32, Link>;

/// What an earlier agent wrote into `PORTS`, by ifindex.
pub(crate) type Entries = BTreeMap<u32, Port>;

/// Counter slots of an earlier agent's ports, by ifindex.
pub(crate) type PreviousSlots = HashMap<u32, u32>;

/// Loads the programs, and takes over what an earlier agent's have.
fn load(config: &Config, grace_periods: GracePeriods) -> Result<Datapath, DatapathError> {
    let datapath = Datapath::open(config, grace_periods)?;
    handover::enter(&datapath);
    Ok(datapath)
}

/// What the agent keeps of its node: what is desired, the state of each resource, and the ways to the kernel.
pub(crate) struct Node {
    pub(crate) store: Store,
    pub(crate) kernel: Kernel,
    pub(crate) datapath: Datapath,
    pub(crate) registry: Registry,
    /// Allocated capacity per uplink.
    pub(crate) ledger: Ledger,
    pub(crate) admission: Admission,
    /// Prepared claims.
    pub(crate) claims: Claims,
    /// Claims that the scheduler has given something of the node, prepared or not, by UID.
    pub(crate) allocated: BTreeMap<String, Claim>,
    pub(crate) speeds: Speeds,
    /// The queues of guaranteed uplinks as they were made last.
    pub(crate) guaranteed: BTreeMap<String, Shares>,
    /// Warnings since the start.
    pub(crate) warnings: Vec<String>,
    /// Warnings of those who work beside the agent's thread, by who they are.
    pub(crate) remarks: BTreeMap<&'static str, String>,
    /// Unreadable relocation files, in quarantine.
    pub(crate) aside: Vec<PathBuf>,
    /// Unreadable records.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Ports with programs that are no attachment's, by ifindex.
    pub(crate) unattached: UnattachedPorts,
    /// Whether something of such ports may be left.
    pub(crate) leftovers: bool,
    /// Attachments that were taken out, and whose programs could not all be detached.
    pub(crate) unfinished: Vec<Unfinished>,
    /// Foreign ports, each with its bridge.
    pub(crate) foreign_ports: BTreeMap<u32, u32>,
    /// The kernel's nf_tables rules; none while unknown.
    pub(crate) rules: Option<Rules>,
    /// The table as it was set.
    pub(crate) watched_rules: Option<Watched>,
    /// The node's addresses and the interfaces with `from_wire`.
    pub(crate) nat_ingress: NatIngress,
    /// The reverse path filters.
    pub(crate) reverse_paths: Filters,
    /// The masquerading interfaces.
    pub(crate) masquerade: Masquerade,
    /// Whether others' rules for bridged packets are heeded.
    pub(crate) heeding: Heeded,
    /// How large the packets of containers' veths are.
    pub(crate) packet_sizing: PacketSizing,
    /// Asks connection tracking beside the agent's thread.
    pub(crate) tracker: Tracker,
    /// The programs on the node's own sockets.
    pub(crate) sockets: Sockets,
    pub(crate) sweeping: Sweeping,
    pub(crate) kernel_flows: KernelFlows,
    /// Addresses that had flows of the kernel's.
    pub(crate) former: Former,
    /// For those who read the connections beside the agent's thread.
    pub(crate) tallies: Arc<Tallies>,
    /// Learned stations.
    pub(crate) learning: Learning,
    /// What containers that are gone have carried; none where nobody asks.
    pub(crate) departed: Option<KeptDeparted>,
    pub(crate) events: Events,
    /// The configuration that the agent was started with.
    pub(crate) config: ConfigReport,
    /// The capacity in the last event.
    pub(crate) told: Vec<(String, PoolReport, PoolReport)>,
    pub(crate) repairs: Repairs,
    /// Faults of leases.
    pub(crate) leases: Leases,
    /// Containers whose bridge was deleted.
    pub(crate) orphans: Vec<Orphan>,
    /// The addresses that containers expect on their bridges.
    pub(crate) gateways: Gateways,
    /// The configured XDP mode per uplink.
    pub(crate) natives: BTreeMap<String, XdpMode>,
    /// Relocations per uplink.
    pub(crate) relocations: BTreeMap<String, Relocation>,
    /// Failed returns of relocations, per uplink.
    pub(crate) failed_returns: BTreeMap<String, String>,
    /// Those who watch packets.
    pub(crate) watching: Watching,
}

impl Node {
    /// Loads the programs and opens the ways to the kernel, without any attachment.
    ///
    /// # Errors
    /// The kernel's; attached programs keep serving.
    pub(crate) fn open(config: &Config, store: Store) -> Result<Self, KernelError> {
        let (grace_periods, sweeping) = (GracePeriods::open(config.grace_periods), Sweeping::default());
        let datapath = load(config, grace_periods.clone())?;
        Ok(Self {
            store,
            tallies: Arc::new(Tallies::new(Table::open(&datapath)?, Arc::clone(&sweeping.shared.counters))),
            datapath,
            kernel: Kernel::open(grace_periods)?,
            registry: Registry::default(),
            ledger: Ledger::new(&config.uplinks),
            admission: config.admission,
            claims: Claims::default(),
            allocated: BTreeMap::new(),
            speeds: Speeds::open()?,
            guaranteed: BTreeMap::new(),
            warnings: config.warnings.clone(),
            remarks: BTreeMap::new(),
            aside: Vec::new(),
            unreadable: Vec::new(),
            unattached: UnattachedPorts::new(),
            leftovers: false,
            unfinished: Vec::new(),
            foreign_ports: BTreeMap::new(),
            rules: None,
            watched_rules: None,
            nat_ingress: NatIngress::default(),
            reverse_paths: Filters::default(),
            masquerade: Masquerade::new(config.masquerade),
            heeding: Heeded::new(config),
            packet_sizing: PacketSizing::new(config),
            tracker: Tracker::default(),
            sockets: Sockets::new(config.cgroup.clone()),
            sweeping,
            kernel_flows: KernelFlows::default(),
            former: Former::default(),
            learning: Learning::default(),
            departed: config.metrics_labels.are_sums().then(KeptDeparted::default),
            events: Events::default(),
            config: config.report(),
            told: Vec::new(),
            repairs: Repairs::new(config.repairs),
            leases: Leases::default(),
            orphans: Vec::new(),
            gateways: Gateways::default(),
            natives: config.uplinks.iter().map(|(name, uplink)| (name.clone(), uplink.xdp)).collect(),
            relocations: BTreeMap::new(),
            failed_returns: BTreeMap::new(),
            watching: Watching::default(),
        })
    }

    /// Logs a warning and keeps it for the status, once, and the latest of too many.
    pub(crate) fn warn(&mut self, warning: String) {
        tracing::warn!("{warning}");
        if self.warnings.contains(&warning) {
            return;
        }
        if self.warnings.len() >= MAX_WARNINGS {
            self.warnings.remove(0);
        }
        self.warnings.push(warning);
    }

    /// Whether an interface is an attachment's, a bridge, an uplink or a VLAN gateway's, or stays as it is.
    pub(crate) fn is_known(&self, ifindex: u32) -> bool {
        self.registry.by_host(ifindex).is_some()
            || self.registry.bridge(ifindex).is_some()
            || self.registry.uplinks.contains_key(&ifindex)
            || self.registry.gateway_by_end(ifindex).is_some()
            || self.unattached.contains_key(&ifindex)
    }

    /// Allocates a counter slot and clears it.
    ///
    /// # Errors
    /// None is free, or the kernel's.
    pub(crate) fn take_slot(&mut self) -> Result<u32, KernelError> {
        let slot = self.registry.slots.take().ok_or(DatapathError::Full)?;
        let cleared = self.datapath.clear_slot(slot);
        Ok(cleared.map(|()| slot).inspect_err(|_| self.registry.slots.give_back(slot))?)
    }

    /// The same. If it cannot be cleared, it continues from its last owner's counters.
    pub(crate) fn take_slot_uncleared(&mut self) -> Result<u32, String> {
        let slot = self.registry.slots.take().ok_or_else(|| DatapathError::Full.to_string())?;
        if let Err(error) = self.datapath.clear_slot(slot) {
            self.warn(format!("cannot clear counters: {error}"));
        }
        Ok(slot)
    }

    /// The entries of `PORTS`, by ifindex.
    pub(crate) fn port_entries(&self) -> Result<Entries, KernelError> {
        let entries =
            self.datapath.maps.ports.iter().map(|entry| entry.map(|(key, port)| (key.ifindex, port)));
        Ok(entries.collect::<Result<_, _>>().map_err(in_map("PORTS"))?)
    }
}
