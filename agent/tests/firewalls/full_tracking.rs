//! Connection tracking that has no room left: nothing new comes by a host port or leaves a container, and what has begun goes on, as with the reference.

use std::net::SocketAddr;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Protocol, patience};

use crate::entries::fill;
use crate::host_ports::Sides;
use crate::linked::{CLOSED, NODE, Side};
use crate::questions::{to_host_ports, to_the_outside};
use crate::rules::published::REFUSES;
use crate::same::lacks_reference;
use crate::sides::FORGET;

/// Longer than connection tracking takes to call datagrams assured: before that any flow may take their room.
const ASSURED: Duration = Duration::from_secs(4);

/// How long it may take to fill it: 262,144 entries by default.
const FILLED: Duration = Duration::from_secs(120);

/// Conversations by a host port, of both families and protocols.
fn begin(side: &Side) -> Vec<Conversation> {
    let open = |to: &str, protocol| {
        let to = SocketAddr::new(to.parse().unwrap(), CLOSED.0);
        Conversation::open(&side.outside, protocol, to).unwrap()
    };
    let each = NODE.into_iter().flat_map(|to| [Protocol::Tcp, Protocol::Udp].map(|it| open(to, it)));
    each.collect()
}

fn go_on(talks: &mut [Conversation], time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        talks.iter_mut().for_each(|talk| talk.chat(10, 100).unwrap());
        sleep(Duration::from_millis(50));
    }
}

/// Fills connection tracking of a node while conversations go on.
fn fill_beside(side: &Side, name: &str, talks: &mut [Conversation]) {
    let file = side.file(name);
    scope(|threads| {
        let filling = threads.spawn(|| fill(side.node.namespace(), &file));
        let begun = Instant::now();
        while !filling.is_finished() {
            assert!(begun.elapsed() < patience(FILLED), "connection tracking is not full yet");
            go_on(talks, Duration::from_millis(50));
        }
    });
}

#[test]
#[ignore = "takes minutes: --ignored"]
fn where_connection_tracking_is_full_host_ports_are_as_behind_portmap() {
    if lacks_reference() {
        return;
    }
    let sides = Sides::start();
    sides.run(REFUSES);
    let echoes = |side: &Side| {
        let two = &side.sandboxes[1];
        two.addresses().into_iter().map(|ip| two.echo(ip, CLOSED.1).unwrap()).collect::<Vec<_>>()
    };
    let _echoes = sides.both().map(echoes);
    // What is there already would make room when it ends, or as soon as somebody needs it.
    sides.run(&format!("{FORGET} 2>/dev/null"));
    let mut talks = sides.both().map(begin);
    talks.iter_mut().for_each(|talks| go_on(talks, patience(ASSURED)));
    for (side, talks) in sides.both().into_iter().zip(&mut talks) {
        fill_beside(side, "entries", talks);
    }
    let questions = [to_host_ports(), to_the_outside()].concat();
    let (differ, answered) = sides.compare(&questions);
    assert_eq!((differ, answered), (Vec::new(), 0), "nothing new");
    talks.iter_mut().for_each(|talks| go_on(talks, Duration::from_secs(3)));
    drop(talks);
    sides.run(&format!("{FORGET} 2>/dev/null"));
    let (differ, answered) = sides.compare(&questions);
    assert_eq!(differ, Vec::<String>::new());
    assert!(answered > 0, "there is room again");
}
