//! One conversation with the server: list, settle, watch, settle again, until the stream ends or something fails.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use shunt_agent_api::CapacityReport;
use tokio::time::timeout;

use super::backoff::Backoff;
use super::books::Books;
use super::error::PublishError;

/// How long one request may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The server ends a watch after so many seconds. What is published is listed again then, and what a lost event would have said
/// is noticed.
pub(super) const WATCH: u32 = 240;

/// A watch that says nothing for so long has lost its server, which was to end it.
const LOST: Duration = Duration::from_secs(270);

/// An object that the server keeps for the agent.
pub(super) trait Publication {
    /// Its kind.
    type Object: Resource + Clone + Debug + DeserializeOwned;

    fn api(&self) -> &Api<Self::Object>;

    /// Selects what the agent may see: the server lets nodes list what is theirs, and refuses to list without a selector.
    fn selector(&self) -> String;

    fn is_ours(&self, object: &Self::Object) -> bool;

    /// Whether the object, as it is, says what is to be said.
    fn is_settled(&self, object: Option<&Self::Object>, capacity: &CapacityReport) -> bool;

    /// Has the server say it.
    async fn settle(
        &mut self,
        object: Option<Self::Object>,
        capacity: &CapacityReport,
    ) -> Result<Option<Self::Object>, PublishError>;

    /// What an operator should know although it is published.
    fn remark(&self) -> Option<String>;
}

/// Publishes until the stream ends, which it does every few minutes.
///
/// # Errors
/// [`PublishError`]; all is to be begun anew after a while.
pub(super) async fn hold<P: Publication>(publication: &mut P, books: &mut Books) -> Result<(), PublishError> {
    const LIST: &str = "listing";
    let selector = publication.selector();
    let listed = within(LIST, publication.api().list(&ListParams::default().fields(&selector))).await?;
    let version = listed.metadata.resource_version.unwrap_or_default();
    let mut object = listed.items.into_iter().find(|object| publication.is_ours(object));
    let params = WatchParams::default().fields(&selector).timeout(WATCH);
    let events = within("watching", publication.api().watch(&params, &version)).await?;
    let mut events = std::pin::pin!(events);
    let mut undone = Backoff::default();
    loop {
        let Some(capacity) = books.read().await else { return Ok(()) };
        if !publication.is_settled(object.as_ref(), &capacity) {
            object = publication.settle(object, &capacity).await?;
        }
        books.remark(publication.remark()).await;
        let change = tokio::select! {
            () = books.changed() => continue,
            change = next(&mut events, publication) => change?,
        };
        let Some(changed) = change else { return Ok(()) };
        if !publication.is_settled(changed.as_ref(), &capacity) {
            tokio::time::sleep(undone.pause()).await;
        }
        object = changed;
    }
}

/// What has become of the object; none when the server ends the stream.
async fn next<P: Publication>(
    events: &mut (impl Stream<Item = Result<WatchEvent<P::Object>, kube::Error>> + Unpin),
    publication: &P,
) -> Result<Option<Option<P::Object>>, PublishError> {
    loop {
        match hear("watching", events).await? {
            None => return Ok(None),
            Some(Heard::Is(object)) if publication.is_ours(&object) => return Ok(Some(Some(object))),
            Some(Heard::Gone(object)) if publication.is_ours(&object) => return Ok(Some(None)),
            Some(_) => {}
        }
    }
}

/// What a watch says.
pub(super) enum Heard<K> {
    /// An object is new, or has changed.
    Is(K),
    /// An object is gone.
    Gone(K),
    /// All up to this version has been said.
    Reached(String),
}

/// What a watch says next; none when the server ends it.
///
/// # Errors
/// [`PublishError::Silent`], [`PublishError::Request`].
pub(super) async fn hear<K>(
    what: &'static str,
    events: &mut (impl Stream<Item = Result<WatchEvent<K>, kube::Error>> + Unpin),
) -> Result<Option<Heard<K>>, PublishError> {
    let failed = |source| PublishError::Request { what, source: Box::new(source) };
    let Ok(event) = timeout(LOST, events.next()).await else { return Err(PublishError::Silent(what)) };
    let Some(event) = event else { return Ok(None) };
    Ok(Some(match event.map_err(failed)? {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => Heard::Is(object),
        WatchEvent::Deleted(object) => Heard::Gone(object),
        WatchEvent::Bookmark(bookmark) => Heard::Reached(bookmark.metadata.resource_version),
        WatchEvent::Error(status) => return Err(failed(kube::Error::Api(status))),
    }))
}

/// A request, for as long as it may take.
///
/// # Errors
/// [`PublishError::Silent`], [`PublishError::Request`].
pub(super) async fn within<T>(
    what: &'static str,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, PublishError> {
    match timeout(PATIENCE, request).await {
        Ok(answer) => answer.map_err(|source| PublishError::Request { what, source: Box::new(source) }),
        Err(_) => Err(PublishError::Silent(what)),
    }
}
