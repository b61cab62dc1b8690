//! Two nodes that differ in one thing: one has our programs, the other a plain bridge that was told the same.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Value, json};
use shunt_lab::load::{cpus, pin};
use shunt_lab::{Lab, Namespace, Node, Sandbox};

use crate::frames::{Host, Sent};
use crate::wire::{BROADCAST, Mac, Wire, tag, tagged};

/// The containers, each with its MTU: the first and the last take large frames.
pub(crate) const MTUS: [u32; 4] = [9000, 1500, 1500, 9000];

/// Whose broadcast tells the others that nothing more comes, and whose tells it.
const CALLER: usize = 3;
const ANSWERER: usize = 2;

/// IEEE 802 "local experimental", the second.
const MARKER: [u8; 2] = [0x88, 0xb6];

/// How the containers of a pair of twins are attached.
pub(crate) struct Manner {
    /// For our plugin: keys of the network of each container.
    pub(crate) keys: fn(usize) -> Vec<(&'static str, Value)>,
    /// For the plain bridge: what `bridge link set` says of each container's port.
    pub(crate) flags: fn(usize) -> &'static [&'static str],
}

/// One of the twins, as the frames see it.
pub(crate) struct Side {
    pub(crate) wires: Vec<Wire>,
    host: Wire,
    /// The one that all ports are in; the node itself, which is in none, then hears nothing.
    pub(crate) vlan: Option<u16>,
}

/// The twin with our programs.
pub(crate) struct Ours {
    pub(crate) side: Side,
    pub(crate) hosts: Vec<Host>,
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) node: Node,
}

/// The plain one. Namespaces go last.
pub(crate) struct Plain {
    pub(crate) side: Side,
    /// The node's is the last.
    namespaces: Vec<Namespace>,
}

/// Nobody's stack says anything of its own: what comes out was sent by a test. And the bridge is a bridge: br_netfilter would
/// drop IP packets that are malformed before any bridging, which the fast path leaves to the receiver.
fn silence(namespace: &Namespace) {
    for which in ["all", "default"] {
        namespace.sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "1").unwrap();
    }
    for what in ["iptables", "ip6tables", "arptables"] {
        // Missing where the kernel has no br_netfilter.
        namespace.sysctl(&format!("net/bridge/bridge-nf-call-{what}"), "0").ok();
    }
}

/// Where bridges that snoop tell which groups they want to hear of (IGMPv3, MLDv2).
const BRIDGES_OWN: [Mac; 2] = [[0x01, 0x00, 0x5e, 0, 0, 22], [0x33, 0x33, 0, 0, 0, 22]];

impl Ours {
    pub(crate) fn start(lab: &Lab, manner: &Manner) -> Self {
        // The reference bridge has everybody hear everything.
        let node = Node::start_by(lab, "ours", "announcements = 'all'\n").unwrap();
        silence(node.namespace());
        let network = node.network("pods", "cni0", &["10.78.0.0/24", "fd78::/64"]);
        let network = network.with("isDefaultGateway", json!(false));
        let mut sandboxes = Vec::new();
        for (index, mtu) in MTUS.into_iter().enumerate() {
            let network = network.clone().with("mtu", json!(mtu));
            let keys = (manner.keys)(index);
            let network = keys.into_iter().fold(network, |network, (key, value)| network.with(key, value));
            let sandbox = Sandbox::start(lab, &node, &network, &format!("ours-{index}"));
            sandboxes.push(sandbox.unwrap_or_else(|error| panic!("{error:#}\n{}", node.agent().log_tail())));
        }
        for sandbox in &sandboxes {
            silence(sandbox.namespace());
            let ip = |arguments: &[&str]| sandbox.namespace().command("ip", arguments).unwrap();
            ip(&["address", "flush", "dev", "eth0"]);
            ip(&["link", "set", "eth0", "arp", "off"]);
        }
        let side = Side::tap(node.namespace(), sandboxes.iter().map(Sandbox::namespace));
        let host = |(sandbox, wire): (&Sandbox, &Wire)| {
            let attachment = sandbox.attachment();
            let (v4, v6) = (attachment.ipv4().unwrap(), attachment.ipv6().unwrap());
            Host { mac: wire.mac(), v4: v4.octets(), v6: v6.octets() }
        };
        let hosts = sandboxes.iter().zip(&side.wires).map(host).collect();
        Self { side, hosts, sandboxes, node }
    }

    pub(crate) fn bridge_mac(&self) -> Mac {
        self.side.host.mac()
    }
}

impl Plain {
    /// A bridge with the same stations at the same ports.
    pub(crate) fn like(lab: &Lab, ours: &Ours, manner: &Manner) -> Self {
        let node = lab.namespace("plain").unwrap();
        silence(&node);
        let bridge_mac = text(ours.bridge_mac());
        let ip = |arguments: &[&str]| node.command("ip", arguments).unwrap();
        ip(&["link", "add", "cni0", "address", &bridge_mac, "type", "bridge"]);
        ip(&["link", "set", "cni0", "up"]);
        let mut namespaces = Vec::new();
        for (index, (host, mtu)) in ours.hosts.iter().zip(MTUS).enumerate() {
            let namespace = lab.namespace(&format!("plain-{index}")).unwrap();
            silence(&namespace);
            let (port, mtu, mac) = (format!("port{index}"), mtu.to_string(), text(host.mac));
            node.pair(&port, &namespace, "eth0").unwrap();
            namespace
                .command("ip", &["link", "set", "eth0", "address", &mac, "mtu", &mtu, "arp", "off"])
                .unwrap();
            ip(&["link", "set", &port, "mtu", &mtu, "master", "cni0"]);
            let bridge = |arguments: &[&str]| node.command("bridge", arguments).unwrap();
            let flags = (manner.flags)(index);
            // Nobody takes the place of a checked one.
            let kind: &[&str] =
                if flags.contains(&"locked") { &["static", "sticky"] } else { &["dynamic", "extern_learn"] };
            bridge(&[&["fdb", "replace", &mac, "dev", &port, "master"], kind].concat());
            if !flags.is_empty() {
                bridge(&[&["link", "set", "dev", &port], flags].concat());
            }
            namespaces.push(namespace);
        }
        let side = Side::tap(&node, namespaces.iter());
        namespaces.push(node);
        Self { side, namespaces }
    }

    /// Writes down where a container's addresses are, for a bridge that answers who asks for them. It needs IPv6 for that, and
    /// says nothing of its own all the same.
    pub(crate) fn knows(&self, host: &Host) {
        let quiet = ["link", "set", "cni0", "addrgenmode", "none", "type", "bridge", "mcast_snooping", "0"];
        self.node().command("ip", &quiet).unwrap();
        self.node().sysctl("net/ipv6/conf/cni0/disable_ipv6", "0").unwrap();
        for address in [IpAddr::from(host.v4), IpAddr::from(host.v6)] {
            let (address, mac) = (address.to_string(), text(host.mac));
            let neighbor =
                ["neighbour", "replace", &address, "lladdr", &mac, "dev", "cni0", "nud", "permanent"];
            self.node().command("ip", &neighbor).unwrap();
        }
    }

    pub(crate) fn node(&self) -> &Namespace {
        self.namespaces.last().expect("the node's")
    }
}

/// What came out of each port, by the bytes, sorted; the node itself is the last.
pub(crate) type Heard = Vec<Vec<Vec<u8>>>;

impl Side {
    fn tap<'a>(node: &Namespace, containers: impl Iterator<Item = &'a Namespace>) -> Self {
        let wires = containers.map(|namespace| Wire::tap(namespace, "eth0")).collect();
        Self { wires, host: Wire::tap(node, "cni0"), vlan: None }
    }

    /// Sends some frames and hears what comes out. All of it is done on one CPU, where one frame follows the other
    /// through the kernel, so that the last to come is the last that was sent.
    pub(crate) fn pass(&self, frames: &[Sent]) -> Heard {
        self.until_all_is_heard(|| {
            for Sent { from, bytes, .. } in frames {
                self.wires[*from].send(bytes);
            }
        })
    }

    fn until_all_is_heard(&self, send: impl FnOnce()) -> Heard {
        pin(*cpus().unwrap().first().expect("a CPU to run on")).unwrap();
        send();
        for from in [CALLER, ANSWERER] {
            let wire = &self.wires[from];
            let marker = [&BROADCAST[..], &wire.mac(), &MARKER, &[0; 46]].concat();
            wire.send(&self.vlan.map_or(marker.clone(), |vid| tagged(vid, marker)));
        }
        let host = self.vlan.is_none().then_some(&self.host);
        let heard = self.wires.iter().chain(host).enumerate().map(|(index, wire)| {
            let by = self.wires[if index == CALLER { ANSWERER } else { CALLER }].mac();
            let mut frames = wire.until(|frame| is_marker(frame) && frame[6..12] == by);
            frames.retain(|frame| !is_marker(frame) && !BRIDGES_OWN.iter().any(|own| frame[..6] == *own));
            frames.sort();
            frames
        });
        heard.collect()
    }
}

fn is_marker(frame: &[u8]) -> bool {
    bare(frame)[12..14] == MARKER
}

/// Without the outermost tag, which a bridge may put on, change or take off.
pub(crate) fn bare(frame: &[u8]) -> Vec<u8> {
    match tag(frame) {
        Some(_) => [&frame[..12], &frame[16..]].concat(),
        None => frame.to_vec(),
    }
}

/// What one side heard and the other did not, in words. What `may_be_lost` may be missing on our side.
pub(crate) fn differences(
    sent: &[Sent],
    (ours, plain): (&Heard, &Heard),
    may_be_lost: impl Fn(&Sent) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (port, (ours, plain)) in ours.iter().zip(plain).enumerate() {
        let mut balance: BTreeMap<&Vec<u8>, i32> = BTreeMap::new();
        ours.iter().for_each(|frame| *balance.entry(frame).or_default() += 1);
        plain.iter().for_each(|frame| *balance.entry(frame).or_default() -= 1);
        for (frame, more) in balance.into_iter().filter(|(_, more)| *more != 0) {
            let sent = sent.iter().find(|sent| {
                [sent.bytes.clone(), bare(&sent.bytes)]
                    .iter()
                    .any(|sent| *sent == *frame || *sent == bare(frame))
            });
            if more < 0 && sent.is_some_and(&may_be_lost) {
                continue;
            }
            let name = sent.map_or_else(|| format!("{frame:02x?}"), |sent| sent.name.clone());
            found.push(format!("port {port} hears {more:+} of \"{name}\" with the tag {:?}", tag(frame)));
        }
    }
    found
}

fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
