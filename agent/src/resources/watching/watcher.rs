//! The watchers, as the agent's thread and the reader share them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shunt_agent_api::{PacketReport, WatchReport, WatchRequest};
use shunt_dataplane::abi::watch::WatchedPacket;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::asked;

/// Bytes of one report, about.
pub(super) const MOST: usize = 256 << 10;

/// Names of interfaces that are gone are kept up to this number beside twice those that are there.
const FORMER_NAMES: usize = 4_096;

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
    /// Its words for ports that none of them answers to, as it was told last.
    unmatched: Vec<String>,
    told: mpsc::Sender<WatchReport>,
    report: WatchReport,
    /// Bytes of its packets, about.
    bytes: usize,
}

impl Watcher {
    pub(super) fn new(request: WatchRequest, told: mpsc::Sender<WatchReport>) -> Self {
        let (ports, unmatched) = (HashSet::new(), Vec::new());
        Self { request, ports, unmatched, told, report: WatchReport::default(), bytes: 0 }
    }

    pub(super) fn has_left(&self) -> bool {
        self.told.is_closed()
    }

    /// Finds them anew, and has the watcher told where other words of its find none.
    pub(super) fn find_ports(&mut self, names: &HashMap<u32, Named>) {
        let is_wanted = |named: &Named| self.request.ports.iter().any(|word| named.is(word));
        self.ports = names.iter().filter(|(_, named)| is_wanted(named)).map(|(index, _)| *index).collect();
        let finds = |word: &str| self.ports.iter().any(|index| names[index].is(word));
        let unmatched: Vec<_> = self.request.ports.iter().filter(|word| !finds(word)).cloned().collect();
        if unmatched != self.unmatched {
            self.report.unmatched = Some(unmatched.clone());
            self.unmatched = unmatched;
        }
    }

    /// Whether a packet is one of those that it has asked for.
    pub(super) fn wants(&self, packet: &WatchedPacket, is_to_interface: bool) -> bool {
        let at_port = self.request.ports.is_empty()
            || self.ports.contains(&packet.ifindex)
            || is_to_interface && self.ports.contains(&packet.target);
        at_port && asked::verdicts(&self.request) & (1 << (packet.verdict & 31)) != 0
    }

    pub(super) fn keep(&mut self, packet: PacketReport) {
        self.bytes += size(&packet);
        self.report.packets.push(packet);
        if self.bytes >= MOST {
            self.send(0, 0);
        }
    }

    /// Sends what is kept, if there is anything. A slow watcher's packets wait until they are a report's; those are lost then.
    pub(super) fn send(&mut self, left_out: u64, lost: u64) {
        self.report.left_out += left_out;
        self.report.lost += lost;
        if self.report == WatchReport::default() {
            return;
        }
        match self.told.try_reserve() {
            Ok(room) => room.send(std::mem::take(&mut self.report)),
            Err(TrySendError::Full(())) if self.bytes < MOST => return,
            Err(TrySendError::Full(())) => {
                self.report.lost += self.report.packets.len() as u64;
                self.report.packets = Vec::new();
            }
            Err(TrySendError::Closed(())) => self.report = WatchReport::default(),
        }
        self.bytes = 0;
    }
}

/// Bytes of a report, about.
fn size(report: &PacketReport) -> usize {
    let PacketReport { ifname, network, container, namespace, pod, program, .. } = report;
    let PacketReport { verdict, to, stage, reason, data, .. } = report;
    let words = [ifname, network, container, namespace, pod, program, verdict, to, stage, reason, data];
    size_of::<PacketReport>() + words.iter().map(|word| word.len()).sum::<usize>()
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

    /// Those of interfaces that are gone stay, until there are too many: their last packets may not be read yet.
    pub(super) fn set_names(&self, names: HashMap<u32, Named>) {
        let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > 2 * names.len() + FORMER_NAMES {
            *known = names;
        } else {
            known.extend(names);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> PacketReport {
        PacketReport { container: "c".repeat(1_000), data: "d".repeat(1_000), ..PacketReport::default() }
    }

    #[test]
    fn what_a_slow_watcher_has_no_room_for_waits_up_to_a_bound_and_is_counted_then() {
        let (told, mut packets) = mpsc::channel(1);
        let mut watcher = Watcher::new(WatchRequest::default(), told);
        watcher.keep(packet());
        watcher.send(0, 0);
        watcher.keep(packet());
        watcher.send(2, 1);
        assert_eq!(packets.try_recv().unwrap().packets.len(), 1);
        watcher.send(0, 0);
        let report = packets.try_recv().unwrap();
        assert_eq!((report.packets.len(), report.left_out, report.lost), (1, 2, 1));

        for _ in 0..1_000 {
            watcher.keep(packet());
            assert!(watcher.bytes < MOST);
        }
        let first = packets.try_recv().unwrap().packets.len();
        assert!((first - 1) * 2_000 < MOST, "words are counted, too: {first}");
        watcher.send(0, 0);
        let second = packets.try_recv().unwrap();
        assert!(second.lost > 0 && second.packets.len() < first);
        assert_eq!(first + second.packets.len() + second.lost as usize, 1_000);
    }

    #[test]
    fn a_watcher_is_told_once_which_of_its_words_find_no_port_and_once_that_they_do() {
        let (told, mut packets) = mpsc::channel(4);
        let ports = ["veth1", "team/web", "eth0"].map(str::to_owned).to_vec();
        let mut watcher = Watcher::new(WatchRequest { ports, ..WatchRequest::default() }, told);
        let mut names = HashMap::from([(2, Named::interface("eth0".to_owned()))]);
        let mut look = |names: &HashMap<u32, Named>| {
            watcher.find_ports(names);
            watcher.send(0, 0);
            packets.try_recv().ok().and_then(|report| report.unmatched)
        };
        assert_eq!(look(&names).unwrap(), ["veth1", "team/web"]);
        assert_eq!(look(&names), None);
        let pod = Named { namespace: "team".to_owned(), pod: "web".to_owned(), ..Named::default() };
        names.insert(3, Named { ifname: "veth1".to_owned(), ..pod });
        assert_eq!(look(&names).unwrap(), [""; 0]);
        assert_eq!(look(&names), None);
        names.remove(&3);
        assert_eq!(look(&names).unwrap(), ["veth1", "team/web"]);
    }

    #[test]
    fn names_of_interfaces_that_are_gone_are_kept_up_to_a_bound() {
        let shared = Shared::default();
        let named = |indexes: std::ops::Range<u32>| {
            indexes.map(|index| (index, Named::interface(format!("veth{index}")))).collect::<HashMap<_, _>>()
        };
        for index in 0..5_000 {
            shared.set_names(named(index..index + 1));
            assert!(shared.names.lock().unwrap().len() <= FORMER_NAMES + 4);
        }
        shared.set_names(named(6_000..6_001));
        assert_eq!(shared.name(4_999).ifname, "veth4999");
        assert_eq!(shared.name(1).ifname, "");
    }
}
