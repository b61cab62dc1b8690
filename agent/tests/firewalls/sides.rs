//! Two nodes that differ in one thing: one has shunt's plugin and agent, the other the reference's bridge. The same packets enter both.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use shunt_lab::load::{cpus, pin};
use shunt_lab::{Lab, Namespace, Node, Sandbox, patience};

use crate::flows::{Addresses, Frame, NAMES, NODE, Sent};
use crate::packets::{bare, described};
use crate::wire::{BROADCAST, Mac, Wire, tagged};

/// Nothing is on its way any more after so long without anything that comes out.
const SILENCE: Duration = Duration::from_millis(8);

/// How long both sides may take to hear the same.
const PATIENCE: Duration = Duration::from_millis(600);

/// The ports at which the node answers datagrams.
const ANSWERED: [u16; 2] = [7000, 7001];

/// Connection tracking forgets all connections.
pub(crate) const FORGET: &str = "conntrack -F";

/// Stations that nobody is, and that is behind a container's port.
const NOBODY: Mac = [0x02, 0, 0, 0, 0x77, 0x01];
const OTHER: Mac = [0x02, 0, 0, 0, 0x77, 0x10];

/// One of the nodes, with its containers.
pub(crate) struct Side {
    wires: Vec<Wire>,
    /// The bridge's hardware address.
    gateway: Mac,
    /// By family and port.
    node_sockets: Mutex<HashMap<(usize, u16), UdpSocket>>,
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) node: Node,
    _lab: Lab,
}

/// How often each packet came out at each container.
type Heard = BTreeMap<(usize, Vec<u8>), i32>;

impl Side {
    /// With this file for the agent; the reference without one.
    fn start(file: Option<&str>) -> Self {
        let lab = Lab::new().unwrap();
        let subnets = ["10.77.0.0/24", "fd77::/64"];
        let (node, network) = match file {
            Some(file) => {
                let node = Node::start_by(&lab, "node", file).unwrap();
                let network = node.network("pods", "cni0", &subnets);
                (node, network)
            }
            None => {
                let node = Node::bare(&lab, "node").unwrap();
                let network = node.reference_network("pods", "cni0", &subnets);
                (node, network)
            }
        };
        prepare(node.namespace());
        let start = |id: &&str| Sandbox::start(&lab, &node, &network, id).unwrap();
        let sandboxes: Vec<Sandbox> = NAMES[..NODE].iter().map(start).collect();
        node.settle().unwrap();
        for sandbox in &sandboxes {
            silence(sandbox.namespace());
        }
        let wires: Vec<Wire> = sandboxes.iter().map(|it| Wire::tap(it.namespace(), "eth0")).collect();
        let ip = |arguments: &[&str]| node.namespace().command("ip", arguments).unwrap();
        for (sandbox, wire) in sandboxes.iter().zip(&wires) {
            let mac = wire.mac().map(|byte| format!("{byte:02x}")).join(":");
            for address in sandbox.addresses() {
                let address = address.to_string();
                ip(&["neigh", "replace", &address, "lladdr", &mac, "dev", "cni0", "nud", "permanent"]);
            }
        }
        let gateway = Wire::tap(node.namespace(), "cni0").mac();
        node.namespace().enter(|| ANSWERED.map(answer)).unwrap();
        Self { wires, gateway, node_sockets: Mutex::default(), sandboxes, node, _lab: lab }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        let of =
            |at: usize| -> [IpAddr; 2] { self.sandboxes[at].addresses().try_into().expect("two addresses") };
        [of(0), of(1), of(2), ["10.77.0.1".parse().unwrap(), "fd77::1".parse().unwrap()]]
    }

    /// The name of a container's interface in the node.
    pub(crate) fn host_end(&self, at: usize) -> String {
        let result = &self.sandboxes[at].attachment().result;
        let ends = result["interfaces"].as_array().expect("interfaces");
        let host =
            ends.iter().find(|it| it["sandbox"].as_str().is_none_or(str::is_empty) && it["name"] != "cni0");
        host.and_then(|it| it["name"].as_str()).expect("a host end").to_owned()
    }

    /// Runs a shell's script in the node.
    pub(crate) fn run(&self, script: &str) {
        let run = || Command::new("sh").args(["-ec", script]).output().expect("a shell runs");
        let done = self.node.namespace().enter(run).unwrap();
        assert!(done.status.success(), "{script}\n{}", String::from_utf8_lossy(&done.stderr));
    }

    fn send(&self, sent: &Sent) {
        if sent.from == NODE {
            return self.send_from_node(&sent.packet);
        }
        let own = self.wires[sent.from].mac();
        let (to, from) = match sent.frame {
            Frame::Plain => (group(&sent.packet).unwrap_or_else(|| self.station(sent.to)), own),
            Frame::ByGateway => (self.gateway, own),
            Frame::ToAll => (BROADCAST, own),
            Frame::ToNobody => (NOBODY, own),
            Frame::Tagged => (self.station(sent.to), own),
            Frame::FromOther => (self.station(sent.to), OTHER.map(|byte| byte ^ sent.from as u8)),
        };
        let mut frame = [&to[..], &from, &kind(&sent.packet), &sent.packet].concat();
        if kind(&sent.packet) == ARP {
            frame[22..28].copy_from_slice(&from);
            frame.resize(60, 0);
        }
        self.wires[sent.from].send(&if sent.frame == Frame::Tagged { tagged(5, frame) } else { frame });
    }

    /// Has a socket of the node send what such a datagram carries.
    fn send_from_node(&self, packet: &[u8]) {
        let (to, udp): (IpAddr, usize) = if packet[0] >> 4 == 4 {
            (<[u8; 4]>::try_from(&packet[16..20]).expect("an address").into(), 20)
        } else {
            (<[u8; 16]>::try_from(&packet[24..40]).expect("an address").into(), 40)
        };
        let [own, port] = [udp, udp + 2].map(|at| u16::from_be_bytes([packet[at], packet[at + 1]]));
        let family = usize::from(to.is_ipv6());
        let bind = || UdpSocket::bind((self.addresses()[NODE][family], own)).unwrap();
        let mut sockets = self.node_sockets.lock().unwrap();
        let socket =
            sockets.entry((family, own)).or_insert_with(|| self.node.namespace().enter(bind).unwrap());
        // What rules refuse at the output is an error.
        socket.send_to(&packet[udp + 8..], (to, port)).ok();
    }

    fn station(&self, at: usize) -> Mac {
        if at == NODE { self.gateway } else { self.wires[at].mac() }
    }

    /// Closes the node's own sockets, of flows that are over.
    pub(crate) fn close_sockets(&self) {
        self.node_sockets.lock().unwrap().clear();
    }

    /// What has come out since it was last asked; whether there was anything.
    fn hear(&self, heard: &mut Heard) -> bool {
        let mut any = false;
        for (at, wire) in self.wires.iter().enumerate() {
            for packet in wire.at_hand().iter().filter_map(|frame| bare(frame)) {
                *heard.entry((at, packet)).or_default() += 1;
                any = true;
            }
        }
        any
    }

    /// Packets that the containers have sent by the fast path.
    pub(crate) fn fast(&self) -> u64 {
        NAMES[..NODE].iter().map(|id| self.node.agent().port(id).unwrap().from.fast).sum()
    }
}

/// Bridged packets meet the rules of IP, and a refusal that is not sent would be a difference.
fn prepare(node: &Namespace) {
    for name in ["iptables", "ip6tables"] {
        node.sysctl(&format!("net/bridge/bridge-nf-call-{name}"), "1").unwrap();
    }
    for (name, value) in [
        ("net/ipv4/icmp_ratelimit", "0"),
        ("net/ipv6/icmp/ratelimit", "0"),
        ("net/ipv6/conf/default/accept_dad", "0"),
        // What is routed back to where it came from says so otherwise.
        ("net/ipv4/conf/all/send_redirects", "0"),
        ("net/ipv4/conf/default/send_redirects", "0"),
    ] {
        node.sysctl(name, value).unwrap();
    }
    // Where these are of a namespace.
    for (name, value) in [("net/ipv4/icmp_msgs_per_sec", "100000"), ("net/ipv4/icmp_msgs_burst", "100000")] {
        node.sysctl(name, value).ok();
    }
}

/// A container says nothing but what the test sends.
fn silence(container: &Namespace) {
    container.sysctl("net/ipv6/conf/all/disable_ipv6", "1").unwrap();
    for arguments in [&["address", "flush", "dev", "eth0"][..], &["link", "set", "eth0", "arp", "off"]] {
        container.command("ip", arguments).unwrap();
    }
}

/// Answers datagrams until nobody can ask any more: the thread sleeps in its namespace until the tests end.
fn answer(port: u16) {
    let socket = UdpSocket::bind(("::", port)).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 2000];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            socket.send_to(&bytes[..length], from).ok();
        }
    });
}

/// Both sides.
pub(crate) struct Twins {
    pub(crate) ours: Side,
    pub(crate) reference: Side,
}

impl Twins {
    pub(crate) fn start(file: &str) -> Self {
        let (ours, reference) = (Side::start(Some(file)), Side::start(None));
        assert_eq!(ours.addresses(), reference.addresses());
        pin(*cpus().unwrap().first().expect("a CPU to run on")).unwrap();
        Self { ours, reference }
    }

    pub(crate) fn both(&self) -> [&Side; 2] {
        [&self.ours, &self.reference]
    }

    /// Sends packets into both sides, and forgets nothing of what comes out.
    pub(crate) fn send(&self, packets: &[Sent], round: &mut Round) {
        for sent in packets {
            self.both().iter().for_each(|side| side.send(sent));
        }
        round.sent.extend(packets.iter().cloned());
    }

    /// Hears until nothing comes any more, and longer while the sides differ.
    pub(crate) fn settle(&self, round: &mut Round, silence: Duration) {
        let (begun, mut last) = (Instant::now(), Instant::now());
        let silence = silence.max(SILENCE);
        while last.elapsed() < silence || !round.differs && !round.is_equal() {
            round.differs |= begun.elapsed() > patience(PATIENCE);
            let [ours, reference] = &mut round.heard;
            let heard = [self.ours.hear(ours), self.reference.hear(reference)];
            if heard.contains(&true) {
                last = Instant::now();
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// What was sent, and what came out of both sides.
#[derive(Default)]
pub(crate) struct Round {
    /// Whether it has been waited for in vain that both hear the same.
    differs: bool,
    sent: Vec<Sent>,
    heard: [Heard; 2],
}

impl Round {
    fn is_equal(&self) -> bool {
        self.heard[0] == self.heard[1] || self.differences().is_empty()
    }

    /// Packets for which the fast path may be taken: that came out of the reference, and that did not.
    pub(crate) fn data(&self) -> [u64; 2] {
        let sent = self.sent.iter().filter(|sent| sent.is_data);
        let (came, refused): (Vec<_>, Vec<_>) = sent.partition(|sent| self.heard[1].contains_key(&key(sent)));
        [came, refused].map(|packets| packets.len() as u64)
    }

    /// What one side let through and the other did not, in words.
    pub(crate) fn differences(&self) -> Vec<String> {
        let mut balance: BTreeMap<_, i32> = BTreeMap::new();
        for (heard, sign) in self.heard.iter().zip([1, -1]) {
            heard.iter().for_each(|(key, times)| *balance.entry(key).or_default() += sign * times);
        }
        let found = balance.into_iter().filter(|(_, more)| *more != 0);
        let named = |((at, packet), more): (&(usize, Vec<u8>), i32)| {
            let sent = self.sent.iter().find(|sent| key(sent).1 == *packet);
            let name = sent.map_or_else(|| described(packet), |sent| sent.name.clone());
            let is_left_to_receiver = sent.is_some_and(|sent| sent.is_faulty);
            (!is_left_to_receiver).then(|| format!("{} hears {more:+} of \"{name}\"", NAMES[*at]))
        };
        found.filter_map(named).collect()
    }
}

/// The hardware address of the group that a packet is for, if it is for one (RFC 1112, RFC 2464).
fn group(packet: &[u8]) -> Option<Mac> {
    match (packet[0] >> 4, &packet[16..20], packet.get(24..40)) {
        (4, [224..=239, b, c, d], _) => Some([0x01, 0x00, 0x5e, b & 0x7f, *c, *d]),
        (4, [_, _, _, 255], _) => Some(BROADCAST),
        (6, _, Some([0xff, .., a, b, c, d])) => Some([0x33, 0x33, *a, *b, *c, *d]),
        _ => None,
    }
}

fn key(sent: &Sent) -> (usize, Vec<u8>) {
    let frame = [&[0; 12][..], &kind(&sent.packet), &sent.packet].concat();
    let packet = bare(&if sent.frame == Frame::Tagged { tagged(5, frame) } else { frame });
    (sent.to, packet.unwrap_or_default())
}

const ARP: [u8; 2] = [0x08, 0x06];

/// The Ethernet type of a packet.
fn kind(packet: &[u8]) -> [u8; 2] {
    match packet[0] >> 4 {
        4 => [0x08, 0x00],
        6 => [0x86, 0xdd],
        _ => ARP,
    }
}
