//! A restricted port is at no moment open, whichever call of a change the agent dies over: its container lies all the while, and neither its
//! neighbour on the bridge nor the node hears it.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shunt_agent::Agent;
use shunt_agent::config::Config;
use shunt_agent::failpoints::{self, Fault, Plan};
use shunt_agent_api::{
    AttachmentKey, Bandwidth, BridgePort, Interface, PortMapping, Protocol, Rate, Reply, Request,
    Restrictions, Service,
};
use shunt_lab::{Lab, Namespace, run};
use shunt_netlink::LinkEvent;

use crate::datagram::{UDP, framed, packet, udp};
use crate::wire::{BROADCAST, Mac, Wire, says};
use crate::world::config;

const BRIDGE: &str = "br0";
const LIAR: Mac = [2, 0, 0, 0, 0, 2];
const LIE: &str = "a lie";

/// More calls than a change has.
const MOST: u32 = 400;

/// Of so many calls one is met: a start for each takes minutes. All are met with `SHUNT_EVERY_CALL` in the environment.
const STEP: usize = 6;

/// What is done to a port that is attached. Its outcome is of no interest: the agent may have died.
type Change = fn(&Stand, &mut Agent);

struct Stand {
    port: BridgePort,
    config: Config,
    liar: Wire,
    neighbour: Wire,
    /// Hears what comes to an address of the node.
    node: UdpSocket,
    /// To the neighbour and to the node.
    lies: Vec<Vec<u8>>,
}

/// A port that is held to its address, beside one that is nobody's, on a bridge without an address.
fn stand(lab: &Lab, node: &Namespace) -> Stand {
    let ip = |arguments: &[&str]| drop(node.command("ip", arguments).unwrap());
    ip(&["link", "add", BRIDGE, "type", "bridge"]);
    ip(&["link", "set", BRIDGE, "up"]);
    ip(&["addr", "add", "10.99.0.1/32", "dev", "lo"]);
    ip(&["link", "set", "lo", "up"]);
    let ends = [("liar", "02:00:00:00:00:02"), ("ear", "02:00:00:00:00:03")].map(|(name, mac)| {
        let inside = lab.namespace(name).unwrap();
        let path = inside.path().to_str().unwrap().to_owned();
        ip(&["link", "add", name, "type", "veth", "peer", "name", "eth0", "address", mac, "netns", &path]);
        ip(&["link", "set", name, "master", BRIDGE, "up"]);
        inside.command("ip", &["link", "set", "eth0", "up"]).unwrap();
        let wire = Wire::tap(&inside, "eth0");
        (inside, wire)
    });
    let [(liars, liar), (ears, neighbour)] = ends;
    // They live as long as their links, which no test needs to delete.
    std::mem::forget((liars, ears));
    for path in ["all", "liar"] {
        node.sysctl(&format!("net/ipv4/conf/{path}/rp_filter"), "0").unwrap();
    }
    let (indexes, socket) = node
        .enter(|| {
            let indexes = [BRIDGE, "liar"].map(|name| nix::net::if_::if_nametoindex(name).unwrap());
            let socket = UdpSocket::bind("10.99.0.1:7001").unwrap();
            socket.set_nonblocking(true).unwrap();
            (indexes, socket)
        })
        .unwrap();
    let shown = node.command("ip", &["-oneline", "link", "show", "liar"]).unwrap();
    let mac = shown.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
    let octets: Vec<u8> = mac.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect();
    let host: Mac = octets.try_into().unwrap();
    let lie = |destination: Mac, to: &str| {
        let [from, to]: [IpAddr; 2] = ["10.88.0.99", to].map(|ip| ip.parse().unwrap());
        framed(destination, LIAR, &packet(UDP, from, to, 64, udp([7000, 7001], LIE.as_bytes())))
    };
    let interface = |name: &str, index| Interface { name: name.to_owned(), index };
    Stand {
        port: BridgePort {
            key: AttachmentKey { network: "net".into(), container: "liar".into(), ifname: "eth0".into() },
            bridge: interface(BRIDGE, indexes[0]),
            host: interface("liar", indexes[1]),
            mac: "02:00:00:00:00:02".into(),
            ips: vec!["10.88.0.2".parse().unwrap()],
            mtu: 1500,
            netns: None,
            peer_up: true,
            masquerade: Vec::new(),
            unmasqueraded: Vec::new(),
            restrictions: Restrictions { ip_check: true, ..Restrictions::default() },
            mappings: Vec::new(),
            bandwidth: Bandwidth::default(),
            service: Service::default(),
            lease_dir: None,
            vlan: None,
            pod: None,
        },
        config: config(lab),
        liar,
        neighbour,
        node: socket,
        lies: vec![lie(BROADCAST, "10.88.0.3"), lie(host, "10.99.0.1")],
    }
}

impl Stand {
    /// What either has heard since it was asked last.
    fn heard(&self) -> Vec<String> {
        let frames = self.neighbour.at_hand();
        let lies = frames.iter().filter(|frame| says(frame, LIE)).map(|_| "the neighbour".to_owned());
        let node = std::iter::from_fn(|| self.node.recv(&mut [0; 64]).ok()).map(|_| "the node".to_owned());
        lies.chain(node).collect()
    }

    fn restore(&self, agent: &mut Agent, port: &BridgePort) -> Result<(), String> {
        match agent.answer(Request::Restore { port: port.clone() }) {
            Reply::Attached(_) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// As the plugin does it: whether the host end is a port is the plugin's to see to.
    fn finalize(&self, agent: &mut Agent) -> Result<(), String> {
        run("ip", &["link", "set", "liar", "master", BRIDGE]).unwrap();
        self.restore(agent, &self.port())
    }

    fn port(&self) -> BridgePort {
        let mut port = self.port.clone();
        port.bridge.index = nix::net::if_::if_nametoindex(BRIDGE).unwrap();
        port
    }

    fn open(&self) -> Agent {
        Agent::open(&self.config).unwrap()
    }

    /// Makes the change over and over, with one call more before the agent's death each time, until it is made without one.
    fn survive(&self, name: &str, before: Change, change: Change) {
        let mut agent = self.open();
        let step = if std::env::var_os("SHUNT_EVERY_CALL").is_some() { 1 } else { STEP };
        for after in (0..MOST).step_by(step) {
            self.finalize(&mut agent).unwrap_or_else(|error| panic!("{name}, {after}: {error}"));
            before(self, &mut agent);
            failpoints::plan(Plan { failpoint: None, after, fault: Fault::Death });
            change(self, &mut agent);
            let died = failpoints::recall();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(self.heard(), [""; 0], "{name}: dead after {after}");
            drop(agent);
            agent = self.open();
            failpoints::advance(Duration::from_secs(2));
            agent.tick();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(self.heard(), [""; 0], "{name}: the next agent, dead after {after}");
            if !died {
                println!("{name} has {after} calls, or a few less");
                assert!(after > 5, "{name} {after}");
                return;
            }
        }
        panic!("{name} has more than {MOST} calls");
    }
}

fn nothing(_: &Stand, _: &mut Agent) {}

/// FINALIZE finds other facts.
fn replace(stand: &Stand, agent: &mut Agent) {
    let port = BridgePort { ips: vec!["10.88.0.7".parse().unwrap()], mtu: 1400, ..stand.port() };
    drop(stand.restore(agent, &port));
}

/// FINALIZE finds other addresses alone.
fn readdress(stand: &Stand, agent: &mut Agent) {
    let port = BridgePort { ips: vec!["10.88.0.7".parse().unwrap()], ..stand.port() };
    drop(stand.restore(agent, &port));
}

fn lose_a_program(stand: &Stand, _: &mut Agent) {
    let pin = format!("v2/links/from_container-{}", stand.port.host.index);
    fs::remove_file(stand.config.bpffs.join(pin)).unwrap();
}

fn put_right(stand: &Stand, agent: &mut Agent) {
    drop(stand.restore(agent, &stand.port()));
}

fn update(stand: &Stand, agent: &mut Agent) {
    let mapping = PortMapping {
        protocol: Protocol::Tcp,
        host_ip: None,
        host_port: 8080,
        container_port: 80,
        masquerade: false,
        keeps_source: false,
    };
    let ingress = Some(Rate { rate: 100_000_000, burst: 5_000_000 });
    let bandwidth = Bandwidth { ingress, ..Bandwidth::default() };
    let port = BridgePort { mappings: vec![mapping], bandwidth, ..stand.port() };
    agent.answer(Request::Update { port, keeps_mappings: false });
    agent.answer(Request::Update { port: stand.port(), keeps_mappings: false });
}

fn delete_bridge(_: &Stand, _: &mut Agent) {
    run("ip", &["link", "delete", BRIDGE]).unwrap();
}

/// The agent makes the bridge anew.
fn follow(_: &Stand, agent: &mut Agent) {
    agent.follow(&[LinkEvent::Missed]);
    failpoints::advance(Duration::from_secs(2));
    agent.tick();
}

/// What is done before, and the change.
const CHANGES: [(&str, Change, Change); 5] = [
    ("FINALIZE with other facts", nothing, replace),
    ("FINALIZE with other addresses", nothing, readdress),
    ("FINALIZE after the loss of a program", lose_a_program, put_right),
    ("an update of limits and host ports", nothing, update),
    ("the loss of the bridge", delete_bridge, follow),
];

#[test]
fn whichever_call_of_a_change_an_agent_dies_over_a_restricted_container_is_not_heard_in_anothers_name() {
    let lab = Lab::new().unwrap();
    let node = lab.namespace("node").unwrap();
    let stand = stand(&lab, &node);
    // Before it is attached nobody holds it to anything.
    stand.lies.iter().for_each(|lie| stand.liar.send(lie));
    std::thread::sleep(Duration::from_millis(100));
    let heard = stand.heard();
    assert!(["the neighbour", "the node"].iter().all(|who| heard.iter().any(|it| it == who)), "{heard:?}");
    let speak = |is_over: &AtomicBool| {
        while !is_over.load(Ordering::Relaxed) {
            stand.lies.iter().for_each(|lie| stand.liar.send(lie));
            std::thread::sleep(Duration::from_micros(500));
        }
    };
    let work = || {
        for (name, before, change) in CHANGES {
            let mut agent = stand.open();
            let port = stand.port();
            stand.restore(&mut agent, &port).unwrap();
            drop(agent);
            stand.heard();
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| speak(&is_over));
                let survive = std::panic::AssertUnwindSafe(|| stand.survive(name, before, change));
                let survived = std::panic::catch_unwind(survive);
                is_over.store(true, Ordering::Relaxed);
                survived.unwrap_or_else(|cause| std::panic::resume_unwind(cause));
            });
        }
    };
    node.enter(work).unwrap();
}
