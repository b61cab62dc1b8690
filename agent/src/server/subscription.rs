//! A client that listens. It is told what happens, until it leaves, speaks, or does not take what it is told.

use shunt_agent_api::{ErrorKind, Event, EventKind, Reply};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::wire::{Replies, Requests, WireError, refusal};
use crate::resources::events::Events;

pub(super) async fn serve(
    mut requests: Requests,
    mut replies: Replies,
    version: u32,
    events: Option<broadcast::Receiver<Event>>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), WireError> {
    let Some(mut events) = events else {
        return replies.send(version, &refusal(ErrorKind::Unavailable, "too many subscribers")).await;
    };
    replies.send(version, &Reply::Subscribed).await?;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // It has left, or asks what nobody will answer.
            () = requests.until_heard() => return Ok(()),
            _ = stopping.wait_for(|stop| *stop) => return Ok(()),
        };
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(missed)) => lagged(missed),
            Err(RecvError::Closed) => return Ok(()),
        };
        replies.send(version, &Reply::Event(event)).await?;
    }
}

fn lagged(missed: u64) -> Event {
    Events::event(EventKind::Lagged, None, format!("{missed} events were missed"))
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::VERSION;
    use tokio::net::UnixStream;

    use super::super::wire::split;
    use super::*;

    #[tokio::test]
    async fn a_subscriber_that_does_not_read_is_disconnected() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (requests, replies) = split(ours, 1 << 10);
        let (sender, events) = broadcast::channel(4096);
        let (_stop, stopping) = watch::channel(false);
        // More than a socket's buffer takes.
        for _ in 0..4096 {
            sender.send(Events::event(EventKind::Repair, None, "x".repeat(500))).unwrap();
        }
        let served = serve(requests, replies, VERSION, Some(events), stopping).await;
        assert!(matches!(served, Err(WireError::Slow(_))), "{served:?}");
    }

    #[test]
    fn a_subscriber_is_told_that_it_was_too_slow_and_how_much_it_missed() {
        let event = lagged(7);
        assert_eq!((event.event, event.detail.as_str()), (EventKind::Lagged, "7 events were missed"));
    }
}
