//! What the reference plugins have made on the same bridge goes on: their host ports are reached by our containers, and ours by theirs.

use std::path::Path;

use serde_json::json;
use shunt_lab::{Attachment, Container, Echo, Lacking, Protocol, skip, uninterrupted};

use crate::datagram::{UDP, framed, packet, udp};
use crate::imposters::{FORGED, ROUNDS, forge, heard, socket, sources_of_forged};
use crate::shares::dropped;
use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};
use crate::wire::Wire;

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

/// A container of the reference plugins on the stage's bridge, to which port 8081 of the node leads.
fn theirs(stage: &Stage) -> Option<(Container, Attachment, Echo)> {
    if !Path::new("/usr/lib/cni/portmap").is_file() {
        skip(Lacking::Package("containernetworking-plugins"));
        return None;
    }
    // The same name: both IPAMs have one folder of leases.
    let mappings = ["tcp", "udp"].map(|protocol| mapping(8081, 7000, protocol));
    let network = stage.node.reference_network("pods", "cni0", &["10.77.0.0/24"]).then(json!({
        "type": "portmap",
        "capabilities": { "portMappings": true },
        "runtimeConfig": { "portMappings": mappings },
    }));
    let container = Container::create(&stage.lab, "theirs").unwrap();
    let attachment = network.add(stage.node.namespace(), &container).unwrap();
    let echo = Echo::listen(container.namespace(), attachment.addresses()[0], 7000).unwrap();
    Some((container, attachment, echo))
}

#[test]
fn containers_of_both_reach_each_others_host_ports_whether_bridges_call_iptables_or_not() {
    let mut stage = Stage::new();
    stage.add("ours", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let Some((container, ..)) = &theirs(&stage) else { return };
    let _echo = stage.echo(0, 7000);
    let node = stage.node.namespace();
    for calls in ["0", "1"] {
        node.sysctl("net/bridge/bridge-nf-call-iptables", calls).unwrap();
        for protocol in BOTH {
            for address in [NODE[0], "10.77.0.1"] {
                for round in 0..5 {
                    // The kernel has to ask for the receiver: the bridge device sends what the bridge has translated.
                    node.command("ip", &["neighbor", "flush", "dev", "cni0"]).unwrap();
                    let what = format!("{protocol:?} by {address}, {calls}, {round}");
                    let ours = stage.sandboxes[0].namespace();
                    for (client, port) in [(ours, 8081), (container.namespace(), 8080)] {
                        let mut talk = stage.open(client, protocol, address, port);
                        talk.chat(20, 1000).unwrap_or_else(|error| panic!("{port}, {what}: {error:#}"));
                    }
                }
            }
        }
    }
}

/// The kernel translates for the reference's container: a container of ours sends to its client by the number of its host port, by its own port, and
/// in its name.
#[test]
fn a_client_of_a_container_of_theirs_hears_none_of_ours() {
    let mut stage = Stage::new();
    stage.network = stage.network.with("ipMasq", json!(true)).with("ipspoofchk", json!(true));
    stage.add("ours", &[mapping(8080, 7000, "udp")]);
    let Some((_container, attachment, _echo)) = theirs(&stage) else { return };
    let ours = stage.sandboxes[0].namespace();
    let client = socket(&stage.outside, (address(OUTSIDE[0]), 5000));
    client.connect((address(NODE[0]), 8081)).unwrap();
    let ask = || {
        client.send(b"question").unwrap();
        let mut bytes = [0; 100];
        let length = uninterrupted(|| client.recv(&mut bytes)).unwrap();
        assert_eq!(&bytes[..length], b"question");
    };
    ask();
    let wire = Wire::tap(&stage.outside, "eth0");
    let raw = Wire::tap(ours, "eth0");
    let gateway = Wire::tap(stage.node.namespace(), "cni0").mac();
    let to = client.local_addr().unwrap();
    let spoofed = dropped(stage.node.agent(), "address_spoofed");
    [8081, 7000].into_iter().for_each(|port| forge(ours, port, to));
    let in_its_name =
        packet(UDP, attachment.addresses()[0], to.ip(), 64, udp([7000, 5000], FORGED.as_bytes()));
    raw.send(&framed(gateway, raw.mac(), &in_its_name));
    assert_eq!(heard(&client), [""; 0]);
    let sources = sources_of_forged(&wire);
    assert_eq!(sources.len(), 2 * ROUNDS, "all but what is in another's name leaves: {sources:?}");
    assert!(!sources.contains(&8081), "{sources:?}");
    assert_eq!(dropped(stage.node.agent(), "address_spoofed"), spoofed + 1);
    ask();
}
