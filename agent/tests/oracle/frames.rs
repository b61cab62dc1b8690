//! What is sent: every payload to every kind of station, every kind of station to every kind of station, with tags and
//! sizes of all kinds.

use crate::packets::{self, Hosts};
use crate::wire::{BROADCAST, Mac};

/// Where nobody is until somebody sends from there.
pub(crate) const NOBODY: Mac = [2, 0xbe, 0xef, 0, 0, 1];
/// Stations behind containers, which the bridge learns.
const BEHIND: Mac = [2, 0xbe, 0xef, 0, 0, 2];
const MOVING: Mac = [2, 0xbe, 0xef, 0, 0, 3];
const GROUP_V4: Mac = [0x01, 0x00, 0x5e, 0, 0, 7];
const GROUP_V6: Mac = [0x33, 0x33, 0, 0, 0, 7];

/// One frame.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) name: String,
    /// By which container.
    pub(crate) from: usize,
    pub(crate) bytes: Vec<u8>,
}

/// A container as frames name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) mac: Mac,
    pub(crate) v4: [u8; 4],
    pub(crate) v6: [u8; 16],
}

struct Script {
    sent: Vec<Sent>,
}

impl Script {
    fn send(&mut self, name: impl Into<String>, from: usize, parts: &[&[u8]]) {
        self.sent.push(Sent { name: name.into(), from, bytes: parts.concat() });
    }
}

/// All of them, in the order in which they have to be sent: stations move on the way.
pub(crate) fn all(hosts: &[Host], bridge: Mac) -> Vec<Sent> {
    let mut script = Script { sent: Vec::new() };
    payloads(&mut script, hosts, bridge);
    stations(&mut script, hosts, bridge);
    tags(&mut script, hosts);
    sizes(&mut script, hosts);
    moves(&mut script, hosts);
    script.sent
}

fn payloads(script: &mut Script, hosts: &[Host], bridge: Mac) {
    let [one, two, ..] = hosts else { unreachable!("there are four") };
    let ends = Hosts { from: (one.v4, one.v6), to: (two.v4, two.v6), mac: one.mac };
    let destinations =
        [("a container", two.mac), ("everybody", BROADCAST), ("nobody", NOBODY), ("the bridge", bridge)];
    for (to, destination) in destinations {
        for (what, kind, payload) in packets::all(&ends) {
            script.send(format!("{what} to {to}"), 0, &[&destination, &one.mac, &kind, &payload]);
        }
    }
    // An IP packet that names another container as its sender.
    let lies = Hosts { from: (two.v4, two.v6), to: (hosts[2].v4, hosts[2].v6), mac: two.mac };
    for (what, kind, payload) in packets::all(&lies) {
        script.send(format!("{what} in another's name"), 0, &[&hosts[2].mac, &one.mac, &kind, &payload]);
    }
}

fn stations(script: &mut Script, hosts: &[Host], bridge: Mac) {
    for (from, host) in hosts.iter().enumerate() {
        let sources = [
            ("itself", host.mac),
            ("another container", hosts[(from + 1) % hosts.len()].mac),
            ("the bridge", bridge),
            ("a group", GROUP_V4),
            ("zeros", [0; 6]),
        ];
        let destinations = [
            ("the next one", hosts[(from + 1) % hosts.len()].mac),
            ("the one after it", hosts[(from + 2) % hosts.len()].mac),
            ("itself", host.mac),
            ("everybody", BROADCAST),
            ("a group", GROUP_V4),
            ("a group of IPv6", GROUP_V6),
            ("zeros", [0; 6]),
            ("spanning trees", [1, 0x80, 0xc2, 0, 0, 0]),
            ("whoever can pause", [1, 0x80, 0xc2, 0, 0, 1]),
            ("link-layer neighbours", [1, 0x80, 0xc2, 0, 0, 14]),
        ];
        for (as_whom, source) in sources {
            for (to, destination) in destinations {
                let name = format!("from {from} as {as_whom} to {to}");
                let text = name.clone().into_bytes();
                script.send(name, from, &[&destination, &source, &[0x88, 0xb5], &text]);
            }
        }
    }
}

fn tags(script: &mut Script, hosts: &[Host]) {
    let [one, two, ..] = hosts else { unreachable!("there are four") };
    let tags: [(&str, &[u8]); 8] = [
        ("VLAN 10", &[0x81, 0, 0, 10]),
        ("VLAN 10 with a priority", &[0x81, 0, 0xe0, 10]),
        ("a priority alone", &[0x81, 0, 0x60, 0]),
        ("no VLAN", &[0x81, 0, 0x0f, 0xff]),
        ("a service tag", &[0x88, 0xa8, 0, 10]),
        ("a tag in a service tag", &[0x88, 0xa8, 0, 10, 0x81, 0, 0, 20]),
        ("a tag in a tag", &[0x81, 0, 0, 10, 0x81, 0, 0, 20]),
        ("three tags", &[0x81, 0, 0, 10, 0x81, 0, 0, 20, 0x81, 0, 0, 30]),
    ];
    for (what, tag) in tags {
        for (to, destination) in [("a container", two.mac), ("everybody", BROADCAST), ("nobody", NOBODY)] {
            let body = [tag, &[0x88, 0xb5], what.as_bytes(), &[0; 40]].concat();
            script.send(format!("{what} to {to}"), 0, &[&destination, &one.mac, &body]);
        }
    }
}

/// Container 3 takes large frames, as container 0 does; the others do not.
fn sizes(script: &mut Script, hosts: &[Host]) {
    for payload in [0, 1, 2, 45, 46, 1499, 1500, 1501, 1504, 2986, 8986, 9000] {
        for (to, destination) in
            [("a small one", hosts[1].mac), ("a large one", hosts[3].mac), ("everybody", BROADCAST)]
        {
            let body = vec![payload as u8; payload];
            let name = format!("{payload} bytes to {to}");
            script.send(name, 0, &[&destination, &hosts[0].mac, &[0x88, 0xb5], &body]);
        }
    }
}

/// Stations that come, answer, move and are asked for again; and a container that claims to have moved.
fn moves(script: &mut Script, hosts: &[Host]) {
    let mut say = |name: &str, from: usize, to: Mac, source: Mac| {
        script.send(name, from, &[&to, &source, &[0x88, 0xb5], name.as_bytes(), &[0; 20]]);
    };
    say("to a station that nobody knows yet", 0, BEHIND, hosts[0].mac);
    say("a station behind a container says hello", 1, BROADCAST, BEHIND);
    say("to the station behind a container", 0, BEHIND, hosts[0].mac);
    say("from the station behind a container", 1, hosts[0].mac, BEHIND);
    say("to it from its own container", 1, BEHIND, hosts[1].mac);
    for (at, place) in ["first", "second", "third", "fourth"].iter().enumerate() {
        say(&format!("a station at its {place} place"), at, BROADCAST, MOVING);
        for (from, host) in hosts.iter().enumerate() {
            say(&format!("from {from} to the station at its {place} place"), from, MOVING, host.mac);
        }
    }
    say("a container's frame from another port", 2, hosts[3].mac, hosts[1].mac);
    say("to the container that is said to have moved", 0, hosts[1].mac, hosts[0].mac);
    say("to it from the port where it is said to be", 2, hosts[1].mac, hosts[2].mac);
}
