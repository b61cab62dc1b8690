//! Conversations that were begun before a change.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use shunt_lab::{Conversation, Echo, Protocol, Sandbox};

use crate::stage::{Stage, UPLINK};

/// The port of a container whose conversations go on.
pub(super) const LIVING_PORT: u16 = 7100;

/// The port of the host outside.
const OUTSIDE_PORT: u16 = 7300;

/// By TCP and by UDP: between containers, to the outside by masquerade, and from there through a host port.
pub(super) struct Living {
    talks: Vec<(String, Conversation)>,
    _echoes: [Echo; 2],
}

impl Living {
    pub(super) fn begin(stage: &Stage, client: &Sandbox, server: &Sandbox, host_port: SocketAddr) -> Self {
        let outside = Echo::listen(&stage.outside, UPLINK[1].parse().unwrap(), OUTSIDE_PORT).unwrap();
        let inside = server.echo(server.addresses()[0], LIVING_PORT).unwrap();
        let ways = [
            ("between containers", client.namespace(), inside.address()),
            ("by masquerade", client.namespace(), outside.address()),
            ("through a host port", &stage.outside, host_port),
        ];
        let mut talks = Vec::new();
        for (name, from, to) in ways {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let what = format!("{name}, {protocol:?}");
                let talk = Conversation::open(from, protocol, to);
                talks.push((what.clone(), talk.unwrap_or_else(|error| panic!("{what}: {error:#}"))));
            }
        }
        let mut living = Self { talks, _echoes: [outside, inside] };
        living.go_on("at first");
        living
    }

    /// Every message is answered, in order, and none is repeated.
    pub(super) fn go_on(&mut self, when: &str) {
        for (what, talk) in &mut self.talks {
            talk.chat(20, 800).unwrap_or_else(|error| panic!("{what}, {when}: {error:#}"));
        }
    }

    /// The same without a pause while something is changed.
    pub(super) fn meanwhile<T: Send>(&mut self, when: &str, change: impl FnOnce() -> T + Send) -> T {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let talking = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    self.go_on(when);
                }
                self.go_on(when);
            });
            let changed = change();
            is_over.store(true, Ordering::Relaxed);
            talking.join().unwrap();
            changed
        })
    }
}
