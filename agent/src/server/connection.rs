//! One client: who it is, and what it asks, one request after the other.

use shunt_agent_api::frame::{MAX_QUERY, MAX_REQUEST};
use shunt_agent_api::{ErrorKind, PART, Reply, Request, VERSION};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::request::{Asked, Reader};
use super::subscription;
use super::watching;
use super::wire::{self, Replies, Requests, WireError, refusal};
use crate::agent::Core;

/// A client that has come.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) user: u32,
    /// Whether the user may ask. Where the socket is a group's, its file's mode lets only the group's members connect.
    pub(super) may_read: bool,
    /// Without one the client is told to come back.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

impl Visitor {
    /// Serves the client until it leaves, misbehaves or the agent ends.
    pub(super) async fn serve(self, stream: UnixStream, core: Core, stopping: watch::Receiver<bool>) {
        if let Err(error) = self.accept(stream, &core, stopping).await {
            tracing::debug!(%error, "a client was disconnected");
        }
    }

    async fn accept(
        self,
        stream: UnixStream,
        core: &Core,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), WireError> {
        let Self { user, may_read, place } = self;
        let (requests, mut replies) = wire::split(stream, if user == 0 { MAX_REQUEST } else { MAX_QUERY });
        if !may_read {
            return Err(WireError::Forbidden(user));
        }
        let Some(_place) = place else {
            let full = refusal(ErrorKind::Unavailable, "too many connections, try again");
            return replies.send(VERSION, &full).await;
        };
        Client { user, requests, replies, reader: Reader::default() }.converse(core, stopping).await
    }
}

struct Client {
    user: u32,
    requests: Requests,
    replies: Replies,
    reader: Reader,
}

impl Client {
    async fn converse(mut self, core: &Core, mut stopping: watch::Receiver<bool>) -> Result<(), WireError> {
        loop {
            let heard = tokio::select! {
                heard = self.requests.next() => heard,
                _ = stopping.wait_for(|stop| *stop) => return Ok(()),
            };
            let body = match heard {
                Ok(Some(body)) => body,
                Ok(None) => return Ok(()),
                Err(error @ WireError::TooLong(_)) => {
                    self.say(refusal(ErrorKind::Malformed, error.to_string()), false).await?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            };
            let (reply, parts) = match self.reader.read(&body) {
                Ok(None) => continue,
                Err(error) => (error.into(), false),
                Ok(Some(Asked { request, .. })) if self.user != 0 && !request.is_read_only() => {
                    let why = format!("user {} may ask, and change nothing", self.user);
                    (refusal(ErrorKind::Forbidden, why), false)
                }
                Ok(Some(Asked { request: Request::Subscribe, .. })) => {
                    let Self { requests, replies, reader, .. } = self;
                    return subscription::serve(
                        requests,
                        replies,
                        reader.version,
                        core.subscribe(),
                        stopping,
                    )
                    .await;
                }
                Ok(Some(Asked { request: Request::Watch(request), .. })) => {
                    let Self { requests, replies, reader, .. } = self;
                    return watching::serve(requests, replies, reader.version, request, core, stopping).await;
                }
                Ok(Some(Asked { request: Request::Flows, parts: true, .. })) => {
                    self.list_flows(core).await?;
                    continue;
                }
                Ok(Some(Asked { request, deadline, parts, trace })) => {
                    (core.ask_by(request, deadline, trace).await, parts)
                }
            };
            self.say(reply, parts).await?;
        }
    }

    async fn say(&mut self, reply: Reply, parts: bool) -> Result<(), WireError> {
        let version = self.reader.version;
        match parts {
            true => self.replies.send_in_parts(version, reply).await,
            false => self.replies.send(version, &reply).await,
        }
    }

    /// Sends the connections as they are read: no more than a few pages are kept at a time.
    async fn list_flows(&mut self, core: &Core) -> Result<(), WireError> {
        let version = self.reader.version;
        let encode = move |page: Reply, more| (wire::encoded(version, &page, more), more);
        let mut pages = match core.list_flows(PART, encode).await {
            Ok(pages) => pages,
            Err(why) => return self.say(refusal(ErrorKind::Unavailable, why), true).await,
        };
        while let Some((page, more)) = pages.recv().await {
            self.replies.send_encoded(page?).await?;
            if !more {
                return Ok(());
            }
        }
        Err(WireError::Unfinished)
    }
}
