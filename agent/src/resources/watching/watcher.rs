//! The watchers, as the agent's thread and the reader share them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shunt_agent_api::{PacketReport, WatchReport, WatchRequest};
use shunt_dataplane::abi::watch::WatchedPacket;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::wanted;

/// Whose an interface is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) ifname: String,
    pub(super) network: String,
    pub(super) container: String,
    pub(super) namespace: String,
    pub(super) pod: String,
}

impl Named {
    pub(super) fn interface(ifname: String) -> Self {
        Self { ifname, ..Self::default() }
    }

    /// Whether a watcher's word means it.
    fn is(&self, word: &str) -> bool {
        let pod = word.split_once('/').is_some_and(|(namespace, pod)| {
            !self.pod.is_empty() && (namespace, pod) == (&self.namespace, &self.pod)
        });
        pod || word == self.ifname || word == self.container && !self.container.is_empty()
    }
}

/// Somebody who watches.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) request: WatchRequest,
    /// The interfaces that it has asked for, as far as they are there.
    pub(super) ports: HashSet<u32>,
    told: mpsc::Sender<WatchReport>,
    report: WatchReport,
    /// Bytes of its packets, about.
    bytes: usize,
}

impl Watcher {
    pub(super) fn new(request: WatchRequest, told: mpsc::Sender<WatchReport>) -> Self {
        Self { request, ports: HashSet::new(), told, report: WatchReport::default(), bytes: 0 }
    }

    pub(super) fn has_left(&self) -> bool {
        self.told.is_closed()
    }

    pub(super) fn find_ports(&mut self, names: &HashMap<u32, Named>) {
        let is_wanted = |named: &Named| self.request.ports.iter().any(|word| named.is(word));
        self.ports = names.iter().filter(|(_, named)| is_wanted(named)).map(|(index, _)| *index).collect();
    }

    /// Whether a packet is one of those that it has asked for.
    pub(super) fn wants(&self, packet: &WatchedPacket, is_to_interface: bool) -> bool {
        let at_port = self.request.ports.is_empty()
            || self.ports.contains(&packet.ifindex)
            || is_to_interface && self.ports.contains(&packet.target);
        at_port && wanted::verdicts(&self.request) & (1 << (packet.verdict & 31)) != 0
    }

    pub(super) fn keep(&mut self, packet: PacketReport) {
        self.bytes += size_of::<PacketReport>() + packet.data.len();
        self.report.packets.push(packet);
    }

    /// Sends what is kept, if there is anything. What a slow watcher has no room for is counted as lost.
    pub(super) fn send(&mut self, left_out: u64, lost: u64) {
        self.report.left_out += left_out;
        self.report.lost += lost;
        if self.report == WatchReport::default() {
            return;
        }
        self.bytes = 0;
        match self.told.try_send(std::mem::take(&mut self.report)) {
            Err(TrySendError::Full(report)) => {
                let WatchReport { packets, left_out, lost } = report;
                let lost = lost + packets.len() as u64;
                self.report = WatchReport { packets: Vec::new(), left_out, lost };
            }
            Ok(()) | Err(TrySendError::Closed(_)) => {}
        }
    }

    /// Bytes that are kept.
    pub(super) const fn kept(&self) -> usize {
        self.bytes
    }
}

/// The watchers and the interfaces' names.
#[derive(Debug, Default)]
pub(super) struct Shared {
    watchers: Mutex<Vec<Watcher>>,
    names: Mutex<HashMap<u32, Named>>,
    is_over: AtomicBool,
}

impl Shared {
    pub(super) fn watchers(&self) -> MutexGuard<'_, Vec<Watcher>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of interfaces that are gone stay: their last packets may not be read yet.
    pub(super) fn set_names(&self, names: HashMap<u32, Named>) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    }

    pub(super) fn name(&self, ifindex: u32) -> Named {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&ifindex).cloned().unwrap_or_default()
    }

    /// Nobody is told anything any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.watchers().clear();
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}
