//! The agent without its socket: state on disk, state in the kernel, and the requests that change both.
//!
//! One thread owns the agent and handles one request at a time. The thread must stay in the network namespace in which the agent was opened.

mod admit;
mod adopt;
mod attach;
mod capacity;
mod change;
mod check;
mod detach;
mod events;
mod explain;
mod external_filters;
mod flows;
mod follow;
mod foreign_ports;
mod gateway;
mod health;
mod learn;
mod learned;
mod leases;
mod limit;
mod link_deletion;
mod mappings;
mod masquerade;
mod migrate;
mod nat_ingress;
mod native;
mod orphan;
mod previous_state;
mod programs;
mod recover;
mod refusal;
mod relocate;
mod repair;
mod repairs;
mod report;
mod rules;
mod sockets;
mod spanning_tree;
mod stale_sockets;
mod sweep;
mod trunk;
mod update;
mod uplink;
mod vlan_gateway;
mod vlan_gateway_repair;

use std::collections::BTreeMap;
use std::path::PathBuf;

use shunt_agent_api::{PoolReport, Reply, Request};

pub(crate) use events::Events;
use flows::Sweeping;
use masquerade::Masquerade;
use nat_ingress::NatIngress;
pub use previous_state::PreviousState;
pub use refusal::Refusal;

use self::learned::Learning;
use self::leases::Leases;
use self::orphan::Orphan;
use self::repairs::Repairs;
use self::sockets::Sockets;
use crate::capacity::speed::Speeds;
use crate::capacity::{Ledger, XdpMode};
use crate::config::{Admission, Config};
use crate::kernel::{Kernel, KernelError};
use crate::nft::Rules;
use crate::registry::Registry;
use crate::state::{Loaded, Relocation, Store, StoreError};

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state directory.
    #[error(transparent)]
    State(#[from] StoreError),
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// The agent's state.
pub struct Agent {
    store: Store,
    kernel: Kernel,
    registry: Registry,
    /// Allocated capacity per uplink.
    ledger: Ledger,
    admission: Admission,
    speeds: Speeds,
    /// Warnings since the start.
    warnings: Vec<String>,
    /// The capacity publisher's warning.
    remark: Option<String>,
    /// Unreadable state files, in quarantine.
    aside: Vec<PathBuf>,
    /// Foreign ports, each with its bridge.
    foreign_ports: BTreeMap<u32, u32>,
    /// The kernel's nf_tables rules; none while unknown.
    rules: Option<Rules>,
    /// The node's addresses and the interfaces with `from_wire`.
    nat_ingress: NatIngress,
    /// The masquerading interfaces.
    masquerade: Masquerade,
    /// The programs on the node's own sockets.
    sockets: Sockets,
    sweeping: Sweeping,
    /// Learned stations.
    learning: Learning,
    events: Events,
    /// The capacity in the last event.
    told: Vec<(String, PoolReport, PoolReport)>,
    repairs: Repairs,
    /// Faults of leases.
    leases: Leases,
    /// Containers whose bridge was deleted.
    orphans: Vec<Orphan>,
    /// The configured XDP mode per uplink.
    natives: BTreeMap<String, XdpMode>,
    /// Relocations per uplink.
    relocations: BTreeMap<String, Relocation>,
    /// Failed returns of relocations, per uplink.
    failed_returns: BTreeMap<String, String>,
}

impl Agent {
    /// Locks the state directory, loads the programs and recovers the state of an earlier agent.
    ///
    /// # Errors
    /// [`OpenError`]; attached programs keep serving.
    pub fn open(config: &Config) -> Result<Self, OpenError> {
        Self::succeed(config, PreviousState::take(&config.state_dir)?)
    }

    /// The same, with the result of [`PreviousState::take`].
    ///
    /// # Errors
    /// [`OpenError`]; attached programs keep serving.
    pub fn succeed(config: &Config, previous_state: PreviousState) -> Result<Self, OpenError> {
        let PreviousState { store, loaded, leases } = previous_state;
        let kernel = Kernel::open(config)?;
        let mut agent = Self {
            store,
            kernel,
            registry: Registry::default(),
            ledger: Ledger::new(&config.uplinks),
            admission: config.admission,
            speeds: Speeds::open().map_err(KernelError::from)?,
            warnings: config.warnings.clone(),
            remark: None,
            aside: Vec::new(),
            foreign_ports: BTreeMap::new(),
            rules: None,
            nat_ingress: NatIngress::default(),
            masquerade: Masquerade::new(config.masquerade),
            sockets: Sockets::new(config.cgroup.clone()),
            sweeping: Sweeping::default(),
            learning: Learning::default(),
            events: Events::default(),
            told: Vec::new(),
            repairs: Repairs::new(config.repairs),
            leases: Leases::default(),
            orphans: Vec::new(),
            natives: config.uplinks.iter().map(|(name, uplink)| (name.clone(), uplink.xdp)).collect(),
            relocations: BTreeMap::new(),
            failed_returns: BTreeMap::new(),
        };
        agent.read_speeds();
        agent.recover(loaded, leases)?;
        agent.told = agent.ledger.pools();
        Ok(agent)
    }

    /// Handles a request.
    pub fn answer(&mut self, request: Request) -> Reply {
        let answer = match request {
            Request::Attach { port, set_up } => self.attach_as(port, set_up).map(Reply::Attached),
            Request::Detach { key, link } => Ok(Reply::Detached(self.detach(&key, link))),
            Request::Check { port } => self.check(&port).map(|()| Reply::Checked),
            Request::Collect { network, valid } => Ok(Reply::Collected(self.collect(&network, &valid))),
            Request::CheckLimit { key, bandwidth } => {
                self.check_limit(&key, &bandwidth).map(|()| Reply::Checked)
            }
            Request::Limit { key, bandwidth } => self.limit(&key, bandwidth).map(|()| Reply::Limited),
            Request::Update { port, keeps_mappings } => {
                self.update(port, keeps_mappings).map(Reply::Attached)
            }
            Request::Map { key, mappings } => self.map(&key, mappings).map(Reply::Attached),
            Request::CheckMap { key, mappings } => self.check_map(&key, &mappings).map(|()| Reply::Checked),
            Request::Status => Ok(Reply::Status(self.status())),
            Request::Ports => self.ports().map(Reply::Ports),
            Request::Flows => self.flows().map(Reply::Flows),
            Request::Mappings => self.mapping_reports().map(Reply::Mappings),
            Request::Fdb => self.fdb().map(Reply::Fdb),
            Request::Drops => self.drops().map(Reply::Drops),
            Request::Capacity => Ok(Reply::Capacity(self.capacity())),
            Request::Explain { from, packet } => self.explain(&from, &packet).map(Reply::Explained),
            Request::Audit => self.audit_all().map(Reply::Audited),
            // The connection handles the subscription itself.
            Request::Subscribe => Ok(Reply::Subscribed),
        };
        self.tell_capacity();
        answer.unwrap_or_else(|refusal| Reply::Error(refusal.into()))
    }

    /// The event channel.
    pub(crate) fn events(&self) -> Events {
        self.events.clone()
    }

    /// The number of attachments.
    pub fn attachments(&self) -> usize {
        self.registry.len()
    }
}
