//! Writes what is wrong with the cluster's network on this node as events of the node (`events.k8s.io/v1`).
//!
//! In: the faults as they are now. Out: an event of each reason, one a minute at most ([`Due`]). Nothing waits for it, and nothing is kept
//! for it: what a server did not take is written once it does, if it is still so.

use std::convert::Infallible;
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::PostParams;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::due::Due;
use crate::agent::Core;
use crate::cluster::{Fault, Reason};
use crate::config::KubernetesOptions;
use crate::kubernetes::backoff::Backoff;
use crate::kubernetes::client;
use crate::kubernetes::error::PublishError;
use crate::kubernetes::event::{NAMESPACE_OF_NODES, of_node};
use crate::kubernetes::session::within;

/// Who remarks.
const WHO: &str = "node events";

/// How often faults that last are looked at.
const LOOK: Duration = Duration::from_secs(30);

/// Tells, as long as the agent runs.
pub(super) async fn tell(
    options: &KubernetesOptions,
    node: &str,
    mut faults: watch::Receiver<Vec<Fault>>,
    core: &Core,
) -> Infallible {
    let (mut due, mut backoff, mut failing) = (Due::default(), Backoff::default(), false);
    loop {
        let present = faults.borrow_and_update().clone();
        let mut failure = None;
        for (reason, note) in due.see(&present, Instant::now()) {
            match write(options, node, reason, &note).await {
                Err(error) if !error.is_about_the_object() => {
                    failure = Some(error);
                    break;
                }
                // Another try of a malformed one comes to the same.
                Err(error) => tracing::debug!(%error, reason = reason.name(), "an event is not taken"),
                Ok(()) => {}
            }
            due.written(reason, note, Instant::now());
        }
        if let Some(error) = &failure
            && !failing
        {
            tracing::warn!(%error, "events of the node are not written");
        }
        if failing || failure.is_some() {
            let remark =
                failure.as_ref().map(|error| format!("cluster: events of the node are not written: {error}"));
            core.remark(WHO, remark).await;
        }
        failing = failure.is_some();
        if failing {
            sleep(backoff.wait()).await;
        } else {
            backoff.reset();
            // Its end is the agent's.
            let _changed = timeout(LOOK, faults.changed()).await;
        }
    }
}

async fn write(
    options: &KubernetesOptions,
    node: &str,
    reason: Reason,
    note: &str,
) -> Result<(), PublishError> {
    let event = of_node(node, reason.name(), note, SystemTime::now())
        .ok_or(PublishError::Nonsense("naming the event's node"))?;
    let api: Api<Event> = Api::namespaced(client::connect(options).await?, NAMESPACE_OF_NODES);
    within("creating the event", api.create(&PostParams::default(), &event)).await.map(drop)
}
