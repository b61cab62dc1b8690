//! Writes events of pods (`events.k8s.io/v1`) for what their users can cure.
//!
//! In: notices of the agent's thread, by a bounded queue that nobody waits for. Out: one event of a pod and a reason a minute at most; what comes
//! in between is counted in its series. A server that is silent or forbids costs nobody anything: what is left is tried again later,
//! for five minutes at most, and the status says so.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::backoff::Backoff;
use super::client;
use super::error::PublishError;
use super::event::{of_pod, series};
use super::node_name;
use super::session::within;
use super::told::{Step, Told};
use crate::agent::Core;
use crate::capacity::slice::NodeNameError;
use crate::config::KubernetesOptions;
use crate::resources::notice::Notice;

/// Who remarks.
const WHO: &str = "events";

/// Notices that wait for a server.
const WAITING: usize = 256;

/// Nobody looks for an older one.
const KEPT: Duration = Duration::from_secs(300);

/// Writes events as long as the agent runs.
#[derive(Debug)]
pub struct Recorder {
    options: KubernetesOptions,
    node: String,
}

impl Recorder {
    /// Nothing is asked of the server yet.
    ///
    /// # Errors
    /// [`NodeNameError`].
    pub fn new(options: KubernetesOptions) -> Result<Self, NodeNameError> {
        let node = node_name::of_options(&options)?;
        Ok(Self { options, node })
    }

    /// Writes, and goes on doing so, until it is dropped.
    pub async fn run(self, core: Core) -> Infallible {
        let notices = core.notices();
        let Self { options, node } = self;
        let writer = Writer { options, node, client: None, told: Told::default() };
        Recording { writer, notices, waiting: VecDeque::new(), core, is_failing: false }.go_on().await
    }
}

/// What is being written.
struct Recording {
    writer: Writer,
    notices: mpsc::Receiver<Notice>,
    waiting: VecDeque<(Instant, Notice)>,
    core: Core,
    is_failing: bool,
}

impl Recording {
    async fn go_on(mut self) -> Infallible {
        let mut backoff = Backoff::default();
        loop {
            let (since, notice) = self.next().await;
            match self.writer.write(&notice).await {
                Ok(false) => {}
                Ok(true) => {
                    backoff.reset();
                    self.say(None).await;
                }
                Err(error) if error.is_about_the_object() => {
                    tracing::debug!(%error, pod = notice.pod.name, "an event is not taken");
                }
                Err(error) => {
                    self.say(Some(error)).await;
                    if since.elapsed() < KEPT && self.waiting.len() < WAITING {
                        self.waiting.push_back((since, notice));
                    }
                    sleep(backoff.wait()).await;
                }
            }
        }
    }

    /// The next notice, and since when it waits.
    async fn next(&mut self) -> (Instant, Notice) {
        while let Ok(notice) = self.notices.try_recv() {
            if self.waiting.len() < WAITING {
                self.waiting.push_back((Instant::now(), notice));
            }
        }
        if let Some(first) = self.waiting.pop_front() {
            return first;
        }
        match self.notices.recv().await {
            Some(notice) => (Instant::now(), notice),
            // The agent is ending.
            None => std::future::pending().await,
        }
    }

    /// Has the status say what is wrong. The log has it once.
    async fn say(&mut self, error: Option<PublishError>) {
        if error.is_none() && !self.is_failing {
            return;
        }
        if let Some(error) = error.as_ref().filter(|_| !self.is_failing) {
            tracing::warn!(%error, "events of pods are not written");
        }
        self.is_failing = error.is_some();
        let remark = error.map(|error| format!("kubernetes: events of pods are not written: {error}"));
        self.core.remark(WHO, remark).await;
    }
}

/// The way to the server, and what it was told.
struct Writer {
    options: KubernetesOptions,
    node: String,
    client: Option<Client>,
    told: Told,
}

impl Writer {
    /// Whether it was written now, and not only counted.
    async fn write(&mut self, notice: &Notice) -> Result<bool, PublishError> {
        let step = self.told.see(notice, Instant::now());
        let written = match &step {
            Step::Nothing => return Ok(false),
            Step::Create => self.create(notice).await.map(Some),
            Step::Series { name, count } => self.count(notice, name, *count).await,
        };
        match written {
            Ok(name) => {
                self.told.written(notice, name, Instant::now());
                Ok(true)
            }
            Err(error) => {
                // The credentials may have been renewed.
                self.client = None;
                Err(error)
            }
        }
    }

    /// Creates an event; answers its name.
    async fn create(&mut self, notice: &Notice) -> Result<String, PublishError> {
        let made = of_pod(notice, &self.node, SystemTime::now());
        let Some(made) = made else { return Err(PublishError::Nonsense("naming the event's pod")) };
        let api = self.api(&notice.pod.namespace).await?;
        let created = within("creating the event", api.create(&PostParams::default(), &made)).await?;
        Ok(created.metadata.name.or(made.metadata.name).unwrap_or_default())
    }

    /// Counts on in an event's series; creates another where it is gone.
    async fn count(
        &mut self,
        notice: &Notice,
        name: &str,
        count: u32,
    ) -> Result<Option<String>, PublishError> {
        let api = self.api(&notice.pod.namespace).await?;
        let patch = Patch::Merge(series(count, SystemTime::now()));
        match within("patching the event", api.patch(name, &PatchParams::default(), &patch)).await {
            Err(error) if error.is_not_known() => Ok(Some(self.create(notice).await?)),
            patched => patched.map(|_| None),
        }
    }

    async fn api(&mut self, namespace: &str) -> Result<Api<Event>, PublishError> {
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert(client::connect(&self.options).await?).clone(),
        };
        Ok(Api::namespaced(client, namespace))
    }
}
