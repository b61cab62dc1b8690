//! A client that listens. It is told what happens, until it leaves, speaks, or does not take what it is told.

use bytes::BytesMut;
use shunt_agent_api::{ErrorKind, Event, EventKind, Reply};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::connection::{ConnectionError, refusal, say};
use super::stream::Stream;
use crate::agent::Events;

pub(super) async fn serve(
    stream: &Stream,
    events: Option<broadcast::Receiver<Event>>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), ConnectionError> {
    let Some(mut events) = events else {
        let reply = refusal(ErrorKind::Unavailable, "too many subscribers".to_owned());
        return say(stream, &reply).await;
    };
    say(stream, &Reply::Subscribed).await?;
    let mut said = BytesMut::new();
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // It has left, or says what nobody will answer.
            _ = stream.read(&mut said) => return Ok(()),
            _ = stopping.wait_for(|stop| *stop) => return Ok(()),
        };
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(missed)) => lagged(missed),
            Err(RecvError::Closed) => return Ok(()),
        };
        say(stream, &Reply::Event(event)).await?;
    }
}

fn lagged(missed: u64) -> Event {
    Events::event(EventKind::Lagged, None, None, format!("{missed} events were missed"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::super::test_runtime::run;
    use super::*;

    #[test]
    fn a_listener_that_does_not_read_is_sent_away() {
        run(async {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let ours = Stream::new(ours).unwrap();
            let (sender, events) = broadcast::channel(4096);
            let (_stop, stopping) = watch::channel(false);
            // More than a socket's buffer takes.
            for _ in 0..4096 {
                sender.send(Events::event(EventKind::Repair, None, None, "x".repeat(500))).unwrap();
            }
            let served = serve(&ours, Some(events), stopping).await;
            assert!(matches!(served, Err(ConnectionError::Slow(_))), "{served:?}");
        });
    }

    #[test]
    fn a_listener_is_told_that_it_was_too_slow_and_how_much_it_missed() {
        let event = lagged(7);
        assert_eq!((event.event, event.detail.as_str()), (EventKind::Lagged, "7 events were missed"));
    }
}
