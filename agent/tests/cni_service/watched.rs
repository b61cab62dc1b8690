//! Watchers: what they hear, how soon, where they resume, and those that do not read.

use std::time::{Duration, Instant};

use shunt_cni::proto::v1::{EventKind, WatchRequest, WatchResponse};
use tokio::time::timeout;
use tonic::{Code, Streaming};

use crate::client::{Asked, Client, attachment, stub};
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

/// Hears what is told from where it is on.
pub(crate) struct Watcher {
    client: Client,
    events: Streaming<WatchResponse>,
}

impl Watcher {
    pub(crate) fn start(world: &World, token: &str) -> Self {
        let mut client = world.client();
        let request = WatchRequest { resume_token: token.to_owned() };
        let events = client.runtime.block_on(client.stub.watch(request)).unwrap().into_inner();
        let mut watcher = Self { client, events };
        assert_eq!(watcher.next().kind(), EventKind::Watching);
        watcher
    }

    fn next(&mut self) -> WatchResponse {
        let next = async { timeout(PATIENCE, self.events.message()).await };
        self.client.runtime.block_on(next).unwrap().unwrap().unwrap()
    }

    pub(crate) fn hear(&mut self, kind: EventKind) -> WatchResponse {
        loop {
            let event = self.next();
            if event.kind() == kind {
                return event;
            }
        }
    }
}

fn turn(client: &mut Client, asked: &Asked) {
    client.add(asked).unwrap();
    client.delete(asked).unwrap();
}

#[test]
fn a_watcher_hears_of_an_attachment_at_once_and_resumes_where_it_was() {
    let mut world = World::start();
    let asked = world.container("one");
    let (mut watcher, mut client) = (Watcher::start(&world, ""), world.client());
    client.add(&asked).unwrap();
    let begun = Instant::now();
    let attached = watcher.hear(EventKind::Attached);
    println!("heard {:?} after the Add was answered", begun.elapsed());
    assert_eq!((attached.network.as_str(), attached.attachment), ("pods", Some(attachment("one"))));
    client.delete(&asked).unwrap();
    let detached = watcher.hear(EventKind::Detached);
    drop(watcher);
    client.add(&asked).unwrap();
    let mut again = Watcher::start(&world, &attached.resume_token);
    assert_eq!(again.hear(EventKind::Detached).time, detached.time);
    let attached = again.hear(EventKind::Attached);
    drop(again);
    world.node.agent_mut().terminate().unwrap();
    world.node.restart_agent().unwrap();
    let missed = Watcher::start(&world, &attached.resume_token).next();
    assert_eq!((missed.kind(), missed.missed), (EventKind::Missed, 0), "an earlier agent had them");
    world.client().delete(&asked).unwrap();
    world.assert_empty();
}

#[test]
fn a_watcher_that_does_not_read_keeps_nobody_waiting() {
    let mut world = World::start();
    let asked = world.container("one");
    let socket = world.socket();
    let mut client = world.client();
    let idle: Vec<_> = (0..8).map(|_| Watcher::start(&world, "")).collect();
    for _ in 0..10 {
        turn(&mut client, &asked);
    }
    for mut watcher in idle {
        for _ in 0..10 {
            watcher.hear(EventKind::Attached);
        }
    }
    client.runtime.block_on(async {
        let refused = stub(&socket).await.watch(WatchRequest { resume_token: "nonsense".to_owned() }).await;
        assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    });
    world.assert_empty();
}
