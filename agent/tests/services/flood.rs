//! A container that begins more flows by the kernel's way than there is room for: nobody's else are forgotten, and its own are all the
//! kernel's until some have ended.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData};
use shunt_dataplane::abi::{ABI_VERSION, FlowKey, KernelFlow, MAX_KERNEL_FLOWS};
use shunt_lab::Protocol;

use crate::cluster::Cluster;
use crate::rules::Mode;

/// Every port of it is the endpoint's.
const EVERY_PORT: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 11);

/// The endpoint's port, at which it speaks first.
const SPOKEN_AT: u16 = 7001;

const PATIENCE: Duration = Duration::from_secs(5);

/// A connection by the Service's address: the client's end and the endpoint's.
struct Idle(TcpStream, TcpStream);

impl Idle {
    fn open(cluster: &Cluster, listener: &TcpListener, from: usize) -> Self {
        let to = SocketAddr::new(EVERY_PORT.into(), SPOKEN_AT);
        let connect = || TcpStream::connect_timeout(&to, PATIENCE).unwrap();
        let client = cluster.sandboxes[from].namespace().enter(connect).unwrap();
        let (endpoint, _) = listener.accept().unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(client, endpoint)
    }

    /// The endpoint speaks first: nothing of the client's says whose the flow is.
    fn is_spoken_to(&mut self) -> bool {
        self.1.write_all(b"shunt").unwrap();
        let mut heard = [0; 5];
        self.0.read_exact(&mut heard).is_ok() && heard == *b"shunt"
    }
}

/// Sends a datagram to each of 50,000 ports, from each of `sockets` sockets.
fn flood(cluster: &Cluster, from: usize, sockets: u32) {
    let bind = || UdpSocket::bind("0.0.0.0:0").unwrap();
    for _ in 0..sockets {
        let socket = cluster.sandboxes[from].namespace().enter(bind).unwrap();
        for port in 10_000..60_000 {
            // What the endpoint refuses comes back as an error of the next call.
            socket.send_to(b"flood", (EVERY_PORT, port)).ok();
        }
    }
}

/// Asks for 35,000 connections, each of which the endpoint refuses.
fn refused(cluster: &Cluster, from: usize, endpoint: Ipv4Addr) {
    let ask = || (10_000..45_000).all(|port| TcpStream::connect((endpoint, port)).is_err());
    assert!(cluster.sandboxes[from].namespace().enter(ask).unwrap());
}

fn recorded(cluster: &Cluster) -> usize {
    let pin = cluster.node.agent().bpffs().join(format!("v{ABI_VERSION}/maps/KERNEL_FLOWS"));
    let map = Map::from_map_data(MapData::from_pin(pin).unwrap()).unwrap();
    let flows: HashMap<MapData, FlowKey, KernelFlow> = HashMap::try_from(map).unwrap();
    flows.keys().count()
}

fn is_apart(cluster: &Cluster, container: &str) -> bool {
    let warnings = cluster.node.agent().status().unwrap().warnings;
    warnings
        .iter()
        .any(|warning| warning.contains(container) && warning.contains("all of the kernel's flows"))
}

#[test]
fn a_flood_by_a_service_forgets_nobodys_flows_and_its_own_are_the_kernels() {
    let cluster = Cluster::start(Mode::Nftables);
    let node = cluster.node.namespace();
    let endpoint = cluster.sandboxes[1].attachment().ipv4().unwrap();
    let table = format!(
        "table ip every-port {{
            chain services {{
                type nat hook prerouting priority dstnat
                ip daddr {EVERY_PORT} dnat to {endpoint}
            }}
        }}"
    );
    node.command("nft", &[&table]).unwrap();
    let listen = || TcpListener::bind((endpoint, SPOKEN_AT)).unwrap();
    let listener = cluster.sandboxes[1].namespace().enter(listen).unwrap();
    let mut neighbor = Idle::open(&cluster, &listener, 2);
    let mut own = Idle::open(&cluster, &listener, 0);
    assert!(neighbor.is_spoken_to() && own.is_spoken_to());
    // The flood is over as soon as it has ended.
    for timeout in ["nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"] {
        node.sysctl(&format!("net/netfilter/{timeout}"), "8").unwrap();
    }

    flood(&cluster, 0, 3);

    assert!(neighbor.is_spoken_to(), "another container's flow is forgotten");
    let flows = recorded(&cluster);
    assert!(flows <= MAX_KERNEL_FLOWS as usize / 2 + 1_000, "{flows} flows");
    assert!(own.is_spoken_to());
    assert!(is_apart(&cluster, "client"), "{:?}", cluster.node.agent().status().unwrap().warnings);
    refused(&cluster, 0, endpoint);
    assert!(!is_apart(&cluster, "endpoint"), "who only answers pays");
    // One that nobody has room for.
    let mut late = Idle::open(&cluster, &listener, 0);
    assert!(late.is_spoken_to());
    cluster.to_service(0, Protocol::Udp).chat(3, 1000).unwrap();
    cluster.direct(0, Protocol::Udp).chat(3, 1000).unwrap();

    let begun = Instant::now();
    while is_apart(&cluster, "client") {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is apart for good");
        std::thread::sleep(Duration::from_millis(200));
    }
    // A few are of no harm: nobody sweeps for them.
    while recorded(&cluster) > MAX_KERNEL_FLOWS as usize / 8 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} flows are left", recorded(&cluster));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(neighbor.is_spoken_to() && own.is_spoken_to() && late.is_spoken_to());
    let [fast, all] = cluster.sent("client");
    cluster.direct(0, Protocol::Tcp).chat(20, 1000).unwrap();
    let [fast_then, all_then] = cluster.sent("client");
    assert!(fast_then - fast >= 20, "{} of {} are fast again", fast_then - fast, all_then - all);
}
