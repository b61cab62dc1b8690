//! A watch that goes on where the one before it ended: what is watched is listed once, and anew only when the server no longer has what
//! came behind (410).

use futures_util::Stream;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::error::PublishError;
use super::session::{Heard, WATCH, hear, within};

/// Where such a watch is.
pub(super) struct Resumed {
    what: &'static str,
    /// The version that everything up to is known; none before it is listed.
    version: Option<String>,
    /// The version that the last watch began at.
    opened: Option<String>,
}

/// What has become of an object.
pub(super) enum Told<K> {
    /// It is there, and so.
    Is(K),
    /// It is gone.
    Gone(K),
}

impl Resumed {
    /// None of it is known yet; `what` is for error messages.
    pub(super) const fn new(what: &'static str) -> Self {
        Self { what, version: None, opened: None }
    }

    /// Whether all is to be listed before it is watched.
    pub(super) const fn is_unlisted(&self) -> bool {
        self.version.is_none()
    }

    /// All of this version is known.
    pub(super) fn listed(&mut self, version: String) {
        self.version = Some(version);
    }

    /// All is to be listed anew.
    pub(super) fn forget(&mut self) {
        self.version = None;
    }

    /// Begins a watch; the server ends it after a while, for credentials are read anew then. Bookmarks say how far it has come.
    ///
    /// # Errors
    /// [`PublishError`], for [`Self::ended`].
    pub(super) async fn open<K: Clone + std::fmt::Debug + DeserializeOwned>(
        &mut self,
        api: &Api<K>,
    ) -> Result<impl Stream<Item = Result<WatchEvent<K>, kube::Error>> + use<K>, PublishError> {
        self.opened.clone_from(&self.version);
        let params = WatchParams { bookmarks: true, ..WatchParams::default() }.timeout(WATCH);
        within(self.what, api.watch(&params, self.version.as_deref().unwrap_or_default())).await
    }

    /// What the watch tells next; none when the server ends it.
    ///
    /// # Errors
    /// [`PublishError`], for [`Self::ended`].
    pub(super) async fn next<K: Resource>(
        &mut self,
        events: &mut (impl Stream<Item = Result<WatchEvent<K>, kube::Error>> + Unpin),
    ) -> Result<Option<Told<K>>, PublishError> {
        loop {
            let Some(heard) = hear(self.what, events).await? else { return Ok(None) };
            let (told, reached) = match heard {
                Heard::Is(object) => {
                    let reached = object.meta().resource_version.clone();
                    (Some(Told::Is(object)), reached)
                }
                Heard::Gone(object) => {
                    let reached = object.meta().resource_version.clone();
                    (Some(Told::Gone(object)), reached)
                }
                Heard::Reached(version) => (None, Some(version)),
            };
            if let Some(version) = reached.filter(|version| !version.is_empty()) {
                self.version = Some(version);
            }
            if told.is_some() {
                return Ok(told);
            }
        }
    }

    /// What the end of a watch comes to: it is gone on with, or all is listed anew, or it has failed.
    ///
    /// # Errors
    /// That of the watch.
    pub(super) fn ended(&mut self, ended: Result<(), PublishError>) -> Result<(), PublishError> {
        match ended {
            Err(error) if error.is_of_unknown_version() => {
                tracing::info!(
                    what = self.what,
                    version = self.version,
                    "the server no longer knows what came behind: all is listed anew"
                );
                self.version = None;
                Ok(())
            }
            // An answer that has become too long, or was cut off: what came of it holds.
            Err(error) if error.is_of_broken_answer() && self.version != self.opened => Ok(()),
            ended => ended,
        }
    }
}
