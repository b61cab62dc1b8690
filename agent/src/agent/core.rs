//! The thread that owns the agent's state, and the handle by which others ask it.

use std::sync::Arc;
#[cfg(feature = "kubernetes")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use shunt_agent_api::{
    AgentError, ErrorKind, Event, Reply, Request, TraceParent, WatchReport, WatchRequest, deadline,
};
use shunt_netlink::LinkEvent;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::clock::Clock;
#[cfg(feature = "kubernetes")]
use super::consult::{self, Consult};
use super::reader::Reader;
use super::unavailable::unavailable;
use super::{Agent, OpenError, PreviousState};
use crate::config::Config;
use crate::requests::query::mappings::HostPort;
use crate::requests::query::owners::Owners;
use crate::requests::query::traffic::TrafficReport;
use crate::resources::events::Events;
#[cfg(feature = "kubernetes")]
use crate::resources::notice::Notice;

/// Jobs that may wait. A request waits in its connection while the queue is full.
const QUEUE: usize = 256;

/// The answer of an agent that ends.
const STOPPING: &str = "the agent is stopping";

/// The answer to a request that is not begun.
const LATE: &str = "the request came after its deadline and was not begun: \
                    the agent had too much to do, or is in another time namespace than the plugin";

/// Why there is no core.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The agent cannot start.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The thread or its timer cannot be made.
    #[error("the agent's thread: {0}")]
    Thread(std::io::Error),
    /// The thread ended.
    #[error("the agent's thread ended unexpectedly")]
    Lost,
}

enum Job {
    Answer(Box<Request>, Option<u64>, Option<TraceParent>, oneshot::Sender<Reply>),
    HostPorts(oneshot::Sender<Vec<HostPort>>),
    Owners(oneshot::Sender<Owners>),
    Traffic(oneshot::Sender<Result<TrafficReport, AgentError>>),
    Watch(Box<WatchRequest>, oneshot::Sender<Result<mpsc::Receiver<WatchReport>, AgentError>>),
    LookAfterWatchers,
    Follow(Vec<LinkEvent>),
    Tick,
    #[cfg(feature = "kubernetes")]
    Do(Box<dyn FnOnce(&mut Agent) + Send>),
}

/// A handle on the agent's thread. The thread ends with the last handle.
#[derive(Clone, Debug)]
pub struct Core {
    jobs: mpsc::Sender<Job>,
    events: Events,
    reader: Reader,
    worked: Arc<AtomicBool>,
    /// Who is asked before a pod's container is attached.
    #[cfg(feature = "kubernetes")]
    consulted: Arc<OnceLock<Arc<dyn Consult>>>,
}

impl Core {
    /// Starts the thread and waits until the agent has taken over what there is. The receiver hears when it ends.
    ///
    /// # Errors
    /// [`CoreError::Open`].
    pub async fn start(
        config: Config,
        previous_state: PreviousState,
    ) -> Result<(Self, oneshot::Receiver<()>), CoreError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (opened, is_open) = oneshot::channel();
        let (alive, ended) = oneshot::channel();
        let worked = Arc::new(AtomicBool::new(false));
        let works = Arc::clone(&worked);
        let run = move || {
            let _ends_with_the_thread: oneshot::Sender<()> = alive;
            match open(&config, previous_state) {
                Ok((agent, clock)) => {
                    if opened.send(Ok((agent.events(), agent.tallies()))).is_ok() {
                        work(agent, (queue, clock), &works);
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        thread::Builder::new().name("agent".into()).spawn(run).map_err(CoreError::Thread)?;
        let (events, tallies) = is_open.await.map_err(|_| CoreError::Lost)??;
        let core = Self {
            jobs,
            events,
            reader: Reader::new(tallies),
            worked,
            #[cfg(feature = "kubernetes")]
            consulted: Arc::default(),
        };
        Ok((core, ended))
    }

    /// Whether the agent has done anything since this was asked last.
    pub fn has_worked(&self) -> bool {
        self.worked.swap(false, Ordering::Relaxed)
    }

    /// Asks the agent.
    pub async fn ask(&self, request: Request) -> Reply {
        self.ask_by(request, None, None).await
    }

    /// Asks the agent, which does not begin a request whose deadline ([`deadline`]) is over: its asker has gone on, and what it asked for
    /// may be another's by now. What grows with the table of connections is read beside it ([`Reader`]).
    /// What is done of a trace says so.
    pub async fn ask_by(&self, request: Request, deadline: Option<u64>, trace: Option<TraceParent>) -> Reply {
        match request {
            Request::Flows => {
                return match self.look(Job::Owners).await {
                    Some(owners) => self.reader.all_flows(owners).await,
                    None => unavailable(STOPPING),
                };
            }
            Request::Mappings => return self.mappings().await,
            _ => {}
        }
        #[cfg(feature = "kubernetes")]
        if let Some((pod, consulted)) = consult::pod_of(&request).zip(self.consulted.get())
            && let Err(refusal) = consulted.before_attach(pod).await
        {
            if let Some(notice) = Notice::of_consultation(pod, &refusal) {
                self.events.notify(|| notice);
            }
            return Reply::Error(refusal);
        }
        let (reply, answer) = oneshot::channel();
        if self.jobs.send(Job::Answer(Box::new(request), deadline, trace, reply)).await.is_err() {
            return unavailable(STOPPING);
        }
        answer.await.unwrap_or_else(|_| unavailable(STOPPING))
    }

    async fn mappings(&self) -> Reply {
        match self.look(Job::HostPorts).await {
            Some(ports) => self.reader.mappings(ports).await,
            None => unavailable(STOPPING),
        }
    }

    /// What the agent's thread says; none when it is ending.
    async fn look<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Option<T> {
        let (asker, known) = oneshot::channel();
        self.jobs.send(job(asker)).await.ok()?;
        known.await.ok()
    }

    /// Lists every connection in pages: [`Reader::flows`].
    ///
    /// # Errors
    /// Why it is not begun.
    pub(crate) async fn list_flows<T: Send + 'static>(
        &self,
        most: usize,
        made: impl FnMut(Reply, bool) -> T + Send + 'static,
    ) -> Result<mpsc::Receiver<T>, &'static str> {
        let owners = self.look(Job::Owners).await.ok_or(STOPPING)?;
        self.reader.flows(owners, most, made)
    }

    /// What the containers have carried, those that are gone included, at one moment.
    ///
    /// # Errors
    /// The counters cannot be read, or the agent is ending.
    pub(crate) async fn traffic(&self) -> Result<TrafficReport, AgentError> {
        let stopping = || AgentError { kind: ErrorKind::Unavailable, message: STOPPING.to_owned() };
        self.look(Job::Traffic).await.unwrap_or_else(|| Err(stopping()))
    }

    /// Has packets told. Whoever drops the receiver calls [`Core::has_watched`].
    ///
    /// # Errors
    /// Why not.
    pub(crate) async fn watch(
        &self,
        request: WatchRequest,
    ) -> Result<mpsc::Receiver<WatchReport>, AgentError> {
        let stopping = || AgentError { kind: ErrorKind::Unavailable, message: STOPPING.to_owned() };
        self.look(|asker| Job::Watch(Box::new(request), asker)).await.unwrap_or_else(|| Err(stopping()))
    }

    /// A watcher has left.
    pub(crate) async fn has_watched(&self) {
        let _ended = self.jobs.send(Job::LookAfterWatchers).await;
    }

    /// Subscribes; none if there are too many subscribers.
    pub fn subscribe(&self) -> Option<broadcast::Receiver<Event>> {
        self.events.subscribe()
    }

    /// What the users of pods can cure, from now on. Only the first receiver gets any.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn notices(&self) -> mpsc::Receiver<Notice> {
        self.events.notices()
    }

    /// Has the status say what is not the agent's own affair; none if there is nothing to be said.
    #[cfg(feature = "kubernetes")]
    pub async fn remark(&self, whose: &'static str, remark: Option<String>) {
        let _ended = self.with(move |agent| agent.set_remark(whose, remark)).await;
    }

    /// Has somebody asked before a pod's container is attached, from now on. Only the first one is.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn consult(&self, consulted: Arc<dyn Consult>) {
        let _other = self.consulted.set(consulted);
    }

    /// Does something with the agent; none when it is ending.
    #[cfg(feature = "kubernetes")]
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Agent) -> T + Send + 'static,
    ) -> Option<T> {
        let (done, outcome) = oneshot::channel();
        // The asker may have gone.
        let work = move |agent: &mut Agent| _ = done.send(work(agent));
        self.jobs.send(Job::Do(Box::new(work))).await.ok()?;
        outcome.await.ok()
    }

    /// Tells the agent what has happened to links.
    pub async fn follow(&self, events: Vec<LinkEvent>) {
        // A core that has ended is noticed by its receiver.
        let _ended = self.jobs.send(Job::Follow(events)).await;
    }
}

/// Opens the agent, and what has it look after its node each second.
fn open(config: &Config, previous_state: PreviousState) -> Result<(Agent, Clock), CoreError> {
    let clock = Clock::start().map_err(CoreError::Thread)?;
    Ok((Agent::succeed(config, previous_state)?, clock))
}

/// Does job after job, and looks after what there is each second.
fn work(mut agent: Agent, (mut queue, mut clock): (mpsc::Receiver<Job>, Clock), worked: &AtomicBool) {
    while let Some(job) = clock.next(&mut queue, Job::Tick) {
        match job {
            Job::Follow(events) => agent.follow(&events),
            Job::Tick => agent.tick(),
            // The client may have gone.
            Job::HostPorts(asker) => _ = asker.send(agent.host_ports()),
            Job::Owners(asker) => _ = asker.send(agent.pod_owners()),
            Job::Traffic(asker) => _ = asker.send(agent.traffic()),
            Job::Watch(request, asker) => _ = asker.send(agent.watch(*request)),
            Job::LookAfterWatchers => agent.look_after_watchers(),
            #[cfg(feature = "kubernetes")]
            Job::Do(work) => work(&mut agent),
            Job::Answer(_, Some(deadline), _, reply) if deadline::is_over(deadline) => {
                let _gone = reply.send(unavailable(LATE));
            }
            Job::Answer(request, _, trace, reply) => {
                // The client may have gone; what it asked for is done all the same.
                let _gone = reply.send(agent.answer_of(*request, trace.as_ref()));
            }
        }
        worked.store(true, Ordering::Relaxed);
    }
    agent.leave();
}
