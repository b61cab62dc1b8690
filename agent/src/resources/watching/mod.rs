//! Those who watch what becomes of packets. While there is one, the watched programs are in force; with the last one they go.
//!
//! A thread of its own reads the packets, so no watcher keeps the agent waiting ([`reader`]).

mod asked;
mod reader;
mod running;
mod wanted;
mod watcher;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread;

use shunt_agent_api::{Pod, WatchReport, WatchRequest};
use shunt_dataplane::abi::watch::Watch;
use tokio::sync::mpsc;

pub(crate) use self::running::Watching;

use self::reader::Reader;
use self::running::Running;
use self::watcher::{Named, Shared, Watcher};
use crate::datapath::watching::WatchMaps;
use crate::resources::{Node, Refusal};

/// Watchers at a time.
const MAX_WATCHERS: usize = 8;

/// Full reports that may wait for a watcher.
const BACKLOG: usize = 8;

impl Node {
    /// Has packets told to a new watcher, who leaves by dropping the receiver.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has changed then.
    pub(crate) fn watch(&mut self, request: WatchRequest) -> Result<mpsc::Receiver<WatchReport>, Refusal> {
        asked::check(&request)?;
        self.look_after_watchers();
        let mut running = match self.watching.0.take() {
            Some(running) => running,
            None => self.begin_watching(&request)?,
        };
        let mut watchers = running.shared.watchers();
        let full = watchers.len() >= MAX_WATCHERS;
        let (told, packets) = mpsc::channel(BACKLOG);
        if !full {
            watchers.push(Watcher::new(request, told));
        }
        drop(watchers);
        running.keeps_capturing = false;
        self.watching.0 = Some(running);
        if full {
            return Err(Refusal::Watching(format!("{MAX_WATCHERS} watch already")));
        }
        let outcome = self.tell_programs();
        if let Err(refusal) = outcome {
            // The newcomer's receiver goes with this.
            drop(packets);
            self.look_after_watchers();
            return Err(refusal);
        }
        Ok(packets)
    }

    /// Forgets those who have left, and puts the plain programs in force with the last of them. Ports may have come or gone.
    pub(crate) fn look_after_watchers(&mut self) {
        let Some(running) = &mut self.watching.0 else { return };
        let mut watchers = running.shared.watchers();
        let before = watchers.len();
        watchers.retain(|watcher| !watcher.has_left());
        let is_over = watchers.is_empty();
        let have_left = watchers.len() < before;
        drop(watchers);
        running.keeps_capturing &= !have_left;
        if is_over {
            return self.end_watching();
        }
        if let Err(refusal) = self.tell_programs() {
            tracing::warn!(error = %refusal, "watchers may miss packets");
        }
    }

    /// Sends all watchers away.
    pub(crate) fn end_watching(&mut self) {
        if let Some(mut running) = self.watching.0.take() {
            running.silence();
            self.datapath.unwatch();
            running.shared.end();
            tracing::info!("nobody watches any more: the programs are the plain ones again");
        }
    }

    fn begin_watching(&mut self, request: &WatchRequest) -> Result<Running, Refusal> {
        let capturing = asked::captures(request);
        let WatchMaps { watch, ports, budgets, packets } = self.datapath.watch(capturing)?;
        let shared = Arc::new(Shared::default());
        let reader = Reader::new(packets, budgets, Arc::clone(&shared));
        let thread = thread::Builder::new().name("watch".into()).spawn(move || reader.read());
        if let Err(error) = thread {
            self.datapath.unwatch();
            return Err(Refusal::Watching(error.to_string()));
        }
        tracing::info!(capturing, "somebody watches: the programs are the watched ones");
        let (in_force, watched_ports) = (Watch::default(), HashSet::new());
        let keeps_capturing = false;
        Ok(Running { shared, watch, ports, in_force, watched_ports, capturing, keeps_capturing })
    }

    /// Tells the programs what is wanted, and the reader which port is whose.
    fn tell_programs(&mut self) -> Result<(), Refusal> {
        let names = self.names_of_interfaces();
        let Some(running) = &mut self.watching.0 else { return Ok(()) };
        let mut watchers = running.shared.watchers();
        watchers.iter_mut().for_each(|watcher| watcher.find_ports(&names));
        running.shared.set_names(names);
        let capturing = watchers.iter().any(|watcher| asked::captures(&watcher.request));
        let wanted = wanted::of(&watchers);
        let ports = wanted::ports(&watchers);
        drop(watchers);
        if running.capturing != capturing && !running.keeps_capturing {
            match self.datapath.watch_anew(capturing) {
                Ok(()) => running.capturing = capturing,
                Err(error) if capturing => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(%error, "programs that tell every packet stay, though drops are enough");
                    running.keeps_capturing = true;
                }
            }
        }
        Ok(running.tell(wanted, &ports)?)
    }

    /// Whose each interface is.
    fn names_of_interfaces(&self) -> HashMap<u32, Named> {
        let others = self.names().into_iter().map(|(index, ifname)| (index, Named::interface(ifname)));
        let mut named: HashMap<_, _> = others.collect();
        for attachment in self.registry.attachments() {
            let (namespace, pod) = Pod::names(attachment.port.pod.as_ref());
            let (key, host) = (&attachment.port.key, &attachment.port.host);
            let name = Named {
                ifname: host.name.clone(),
                network: key.network.clone(),
                container: key.container.clone(),
                namespace,
                pod,
            };
            named.insert(host.index, name);
        }
        named
    }
}
