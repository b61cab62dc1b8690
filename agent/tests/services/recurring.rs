//! A backend that is made again with the address that it had, and the tuple of a connection that recurs.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::json;
use shunt_lab::{Sandbox, once_free};

use crate::cluster::Cluster;
use crate::rules::Mode::{self, Iptables, Nftables};
use crate::rules::{ENDPOINT_PORT, SERVICE_PORT, VIRTUAL};

const PATIENCE: Duration = Duration::from_secs(5);

/// The client's port, each time.
const RECURRING: u16 = 5555;

/// Deletes a container and makes another one with its address, which answers if it is the Service's.
fn made_again(cluster: &mut Cluster, at: usize, id: &str) {
    let old = cluster.sandboxes.remove(at);
    let address = old.attachment().ipv4().unwrap();
    old.delete(&cluster.node, &cluster.network).unwrap();
    drop(old);
    let runtime = json!({ "ips": [format!("{address}/24")] });
    let network = cluster.network.clone().with("runtimeConfig", runtime);
    let again = Sandbox::start(&cluster.lab, &cluster.node, &network, id).unwrap();
    assert_eq!(again.attachment().ipv4().unwrap(), address);
    if at == 1 {
        cluster.echo = again.echo(address.into(), ENDPOINT_PORT).unwrap();
    }
    cluster.sandboxes.insert(at, again);
}

/// Asks the Service, or the backend itself, from one and the same port.
fn ask(cluster: &Cluster, is_direct: bool) {
    let endpoint = cluster.sandboxes[1].attachment().ipv4().unwrap();
    let to = if is_direct {
        SocketAddr::new(endpoint.into(), ENDPOINT_PORT)
    } else {
        SocketAddr::new(VIRTUAL.into(), SERVICE_PORT)
    };
    let bind = || once_free(|| UdpSocket::bind(("0.0.0.0", RECURRING))).unwrap();
    let socket = cluster.sandboxes[0].namespace().enter(bind).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    for said in 0..3u8 {
        socket.send(&[said; 100]).unwrap();
        let mut heard = [0; 100];
        assert_eq!(socket.recv(&mut heard).unwrap(), 100, "the first answers, the others come late or never");
        assert_eq!(heard, [said; 100]);
    }
}

fn a_tuple_recurs(mode: Mode) {
    let mut cluster = Cluster::start(mode);
    ask(&cluster, false);
    for (at, id) in [(1, "endpoint-2"), (0, "client-2")] {
        made_again(&mut cluster, at, id);
        ask(&cluster, false);
        ask(&cluster, true);
    }
    // Another agent knows what the one before knew.
    cluster.node.agent_mut().terminate().unwrap();
    cluster.node.restart_agent().unwrap();
    made_again(&mut cluster, 1, "endpoint-3");
    ask(&cluster, false);
}

#[test]
fn a_backend_that_is_made_again_answers_the_same_tuple_with_iptables() {
    a_tuple_recurs(Iptables);
}

#[test]
fn a_backend_that_is_made_again_answers_the_same_tuple_with_nftables() {
    a_tuple_recurs(Nftables);
}
