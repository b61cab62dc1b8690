//! What `explain` says of packets from outside to host ports, and whether it is so.

use serde_json::Value;
use shunt_lab::Protocol;

use crate::datagram::{TCP, UDP, framed, packet, udp};
use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};
use crate::wire::Wire;

/// What the agent says of a frame that comes in by the uplink.
fn explain(stage: &Stage, frame: &[u8]) -> Value {
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    stage.node.agent().ask_with("explain", &["--from", "uplink:up0", "--packet", &hex]).unwrap()
}

/// The stage at which it was decided.
fn end(explained: &Value) -> &Value {
    explained["stages"].as_array().unwrap().iter().rfind(|stage| stage["program"] == "from_wire").unwrap()
}

#[test]
fn a_packet_from_outside_to_a_host_port_is_explained_as_it_fares() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let (wire, node) = (Wire::tap(&stage.outside, "eth0"), Wire::tap(stage.node.namespace(), "up0"));
    let host_ifname = stage.node.agent().port("one").unwrap().host_ifname;
    let syn = |port: u16| {
        let ports = [50_000, port].map(u16::to_be_bytes).concat();
        [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]].concat()
    };
    for (name, from) in NODE.map(address).into_iter().zip(OUTSIDE.map(address)) {
        let comes =
            |protocol, behind| framed(node.mac(), wire.mac(), &packet(protocol, from, name, 64, behind));
        for (protocol, asked, behind) in
            [(TCP, Protocol::Tcp, syn(8080)), (UDP, Protocol::Udp, udp([50_000, 8053], b"explain this"))]
        {
            let explained = explain(&stage, &comes(protocol, behind));
            assert_eq!(explained["verdict"], "deliver", "{name}: {explained}");
            assert_eq!(explained["to"][0], host_ifname.as_str(), "{name}: {explained}");
            let before = stage.node.agent().port("one").unwrap().to.fast;
            let port = if asked == Protocol::Tcp { 8080 } else { 8053 };
            stage.open(&stage.outside, asked, &name.to_string(), port).chat(5, 100).unwrap();
            assert!(stage.node.agent().port("one").unwrap().to.fast >= before + 5, "{name} {asked:?}");
        }
        // Nobody's, and one that is mapped for the other protocol: the node's own.
        for (protocol, behind) in [(TCP, syn(8081)), (TCP, syn(8053)), (UDP, udp([50_000, 8080], b"?"))] {
            let explained = explain(&stage, &comes(protocol, behind));
            assert_eq!(end(&explained)["decision"], "pass", "{name}: {explained}");
        }
    }
    // Explaining is no connection.
    let flows = stage.node.agent().ask("flows").unwrap();
    assert!(flows.as_array().unwrap().iter().all(|flow| flow["sport"] != 50_000), "{flows}");
}

#[test]
fn a_packet_that_is_too_large_is_explained_with_what_its_sender_is_told() {
    let mut stage = Stage::new();
    stage.network = stage.network.with("mtu", serde_json::json!(1400));
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    let (wire, node) = (Wire::tap(&stage.outside, "eth0"), Wire::tap(stage.node.namespace(), "up0"));
    for (name, from) in NODE.map(address).into_iter().zip(OUTSIDE.map(address)) {
        let behind = udp([50_000, 8053], &[7; 1400]);
        let sent = framed(node.mac(), wire.mac(), &packet(UDP, from, name, 64, behind));
        let explained = explain(&stage, &sent);
        assert_eq!(
            (&explained["verdict"], &explained["reason"]),
            (&"drop".into(), &"too_big".into()),
            "{explained}"
        );
        assert!(explained["to"].is_null(), "it goes nowhere: {explained}");
        let detail = end(&explained)["detail"].as_str().unwrap();
        assert!(detail.contains("its sender is told of 1400 bytes, out of up0"), "{explained}");
        // And what is told is what is said.
        wire.at_hand();
        wire.send(&sent);
        let said = explained["packet"].as_str().unwrap();
        let hex = |frame: &[u8]| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        wire.until(|frame| hex(frame) == said);
    }
}
