//! IPv6 packets with an IPv4 address that is mapped into IPv6 (`::ffff:a.b.c.d`): nobody may send them, and to the programs such an address means
//! an IPv4 one. They are translated by nobody and reach nobody.

use std::net::IpAddr;

use serde_json::json;
use shunt_lab::Protocol;

use crate::datagram::{UDP, framed, packet, udp};
use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};
use crate::wire::{Wire, says};

const TEXT: &str = "a mapped one";
/// The source port of all of them.
const PORT: u16 = 5000;
/// A port of the container's to which no host port leads.
const ROUTED: u16 = 7001;

fn mapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        IpAddr::V6(_) => ip,
    }
}

/// IPv6 datagrams between these addresses to a port, as frames.
fn frames(wire: &Wire, to: [u8; 6], ends: &[[IpAddr; 2]], port: u16) -> Vec<Vec<u8>> {
    let datagram =
        |[from, whom]: &[IpAddr; 2]| packet(UDP, *from, *whom, 64, udp([PORT, port], TEXT.as_bytes()));
    ends.iter().map(|ends| framed(to, wire.mac(), &datagram(ends))).collect()
}

/// Datagrams among frames, of either version; errors quote what they are about.
fn datagrams(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let is_datagram = |frame: &Vec<u8>| match frame[12..14] {
        [0x08, 0x00] => frame[23] == UDP,
        [0x86, 0xdd] => frame[20] == UDP,
        _ => false,
    };
    frames.into_iter().filter(|frame| says(frame, TEXT) && is_datagram(frame)).collect()
}

#[test]
fn an_ipv6_packet_with_a_mapped_address_reaches_nobody_by_a_host_port_or_by_masquerading() {
    let mut stage = Stage::new();
    stage.network = stage.network.with("ipMasq", json!(true));
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let (sandbox, node) = (&stage.sandboxes[0], stage.node.namespace());
    let [own_v4, own_v6] = sandbox.addresses()[..] else { unreachable!("one of each family") };
    let ([node_v4, node_v6], [outside_v4, outside_v6]) = (NODE.map(address), OUTSIDE.map(address));
    let [own_mapped, node_mapped, outside_mapped] = [own_v4, node_v4, outside_v4].map(mapped);
    let outside = Wire::tap(&stage.outside, "eth0");
    let inside = Wire::tap(sandbox.namespace(), "eth0");
    let [uplink, gateway] = ["up0", "cni0"].map(|ifname| Wire::tap(node, ifname).mac());
    // From outside: to the host port by either name, and to the container itself.
    let to_host_port = [[outside_mapped, node_v6], [outside_v6, node_mapped], [outside_mapped, node_mapped]];
    let to_container = [[outside_mapped, own_v6], [outside_v6, own_mapped], [outside_mapped, own_mapped]];
    for (ends, port) in [(to_host_port, 8053), (to_container, ROUTED)] {
        frames(&outside, uplink, &ends, port).iter().for_each(|frame| outside.send(frame));
    }
    // From the container: to somebody outside, to its own host port, and as answers to a client of it.
    let to_outside = [[own_v6, outside_mapped], [own_mapped, outside_v6], [own_mapped, outside_mapped]];
    let to_node = [[own_v6, node_mapped], [own_mapped, node_v6], [own_mapped, node_mapped]];
    for (ends, port) in [(to_outside, 9), (to_node, 8053)] {
        frames(&inside, gateway, &ends, port).iter().for_each(|frame| inside.send(frame));
    }
    // What is as it should be goes on, and comes behind all of them.
    for name in NODE {
        stage.open(&stage.outside, Protocol::Udp, name, 8053).chat(5, 100).unwrap();
        stage.open(sandbox.namespace(), Protocol::Udp, name, 8053).chat(5, 100).unwrap();
    }
    // The kernel routes by the destination whatever is a source, as any router: it comes as it was sent.
    let is_as_sent = |frame: &Vec<u8>, source: IpAddr, port: u16| {
        let IpAddr::V6(source) = source else { unreachable!("it is mapped") };
        frame[12..14] == [0x86, 0xdd]
            && frame[22..38] == source.octets()
            && frame[56..58] == port.to_be_bytes()
    };
    for (wire, source, port) in [(&inside, outside_mapped, ROUTED), (&outside, own_mapped, 9)] {
        let came = datagrams(wire.until_silence());
        assert!(came.iter().all(|frame| is_as_sent(frame, source, port)), "{came:02x?}");
    }
    let flows = stage.node.agent().ask("flows").unwrap();
    assert!(flows.as_array().unwrap().iter().all(|flow| flow["sport"] != PORT), "{flows}");
}
