//! A client that watches packets, until it leaves, speaks, or does not take what it is told.

use shunt_agent_api::{Reply, WatchReport, WatchRequest};
use tokio::sync::{mpsc, watch};

use super::wire::{Replies, Requests, WireError};
use crate::agent::Core;

pub(super) async fn serve(
    requests: Requests,
    mut replies: Replies,
    version: u32,
    request: WatchRequest,
    core: &Core,
    stopping: watch::Receiver<bool>,
) -> Result<(), WireError> {
    match core.watch(request).await {
        Err(refusal) => replies.send(version, &Reply::Error(refusal)).await,
        Ok(packets) => {
            let outcome = tell(requests, replies, version, packets, stopping).await;
            core.has_watched().await;
            outcome
        }
    }
}

async fn tell(
    mut requests: Requests,
    mut replies: Replies,
    version: u32,
    mut packets: mpsc::Receiver<WatchReport>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), WireError> {
    replies.send(version, &Reply::Watching).await?;
    loop {
        let report = tokio::select! {
            report = packets.recv() => report,
            // It has left, or asks what nobody will answer.
            () = requests.until_heard() => return Ok(()),
            _ = stopping.wait_for(|stop| *stop) => return Ok(()),
        };
        let Some(report) = report else { return Ok(()) };
        replies.send(version, &Reply::Watched(report)).await?;
    }
}
