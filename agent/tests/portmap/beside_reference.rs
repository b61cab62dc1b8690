//! What the reference plugins have made on the same bridge goes on: their host ports are reached by our containers, and ours by theirs.

use std::path::Path;

use serde_json::json;
use shunt_lab::{Attachment, Container, Echo, Lacking, Protocol, skip};

use crate::stage::{NODE, Stage, mapping};

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
