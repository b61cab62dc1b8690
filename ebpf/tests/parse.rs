//! The headers that no program asks for yet, and what parsing says of each golden packet.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::bytes_packet::BytesPacket;
use golden::case::all;
use golden::world::PLACES;
use shunt_dataplane::wire;
use shunt_dataplane::wire::address::{Address, L4Port, Mac};
use shunt_dataplane::wire::{
    Arp, ArpOperation, EtherType, Fragment, Icmp, NeighborDiscovery, Network, Protocol, Transport, Unreadable,
};

fn packet(name: &str) -> BytesPacket {
    all()
        .into_iter()
        .find(|case| case.name == name)
        .unwrap_or_else(|| panic!("no golden packet {name}"))
        .packet
}

fn network(packet: &BytesPacket) -> Result<Network, Unreadable> {
    wire::frame(packet).and_then(|frame| wire::network(packet, &frame))
}

fn ip(packet: &BytesPacket) -> wire::Ip {
    match network(packet).unwrap() {
        Network::Ip(ip) => ip,
        other => panic!("{other:?}"),
    }
}

fn v4(name: &str) -> Address {
    place(name).addresses()[0].into()
}

fn place(name: &str) -> &'static golden::world::Place {
    PLACES.iter().find(|place| place.name == name).unwrap()
}

#[test]
fn an_arp_request_and_a_reply_say_who_asks_for_whom() {
    let request = Arp {
        operation: ArpOperation::Request,
        sender_mac: place("alpha").mac(),
        sender: v4("alpha"),
        target_mac: Mac::default(),
        target: v4("beta"),
    };
    assert_eq!(network(&packet("alpha_asks_beta")), Ok(Network::Arp(request)));
    let Ok(Network::Arp(reply)) = network(&packet("alpha_to_beta_arp_reply")) else { panic!("no ARP") };
    assert_eq!((reply.operation, reply.target_mac), (ArpOperation::Reply, place("beta").mac()));
}

#[test]
fn arp_for_anything_but_ipv4_over_ethernet_is_malformed() {
    // Hardware, protocol, and the lengths of their addresses.
    for at in [15, 17, 18, 19] {
        let mut odd = packet("alpha_to_broadcast");
        odd.bytes[at] ^= 0x10;
        assert_eq!(network(&odd), Err(Unreadable::Malformed), "byte {at}");
    }
}

#[test]
fn a_neighbour_solicitation_names_its_target_unless_a_router_has_touched_it() {
    let mut solicitation = packet("alpha_to_multicast");
    let target = place("beta").addresses()[1].into();
    let read = |packet: &BytesPacket| wire::neighbor_discovery(packet, &ip(packet));
    assert_eq!(read(&solicitation), Ok(Some(NeighborDiscovery::Solicitation { target })));
    solicitation.bytes[54] = 136;
    assert_eq!(read(&solicitation), Ok(Some(NeighborDiscovery::Advertisement { target })));
    solicitation.bytes[54] = 134;
    assert_eq!(read(&solicitation), Ok(None), "a router advertisement is none of ours");
    solicitation.bytes[54] = 135;
    solicitation.bytes[21] = 254;
    assert_eq!(read(&solicitation), Err(Unreadable::Malformed), "hop limit 254");
    assert_eq!(read(&packet("alpha_to_beta_udp_v6")), Ok(None));
}

#[test]
fn up_to_two_tags_are_looked_behind() {
    let service = wire::frame(&packet("alpha_tag_service")).unwrap();
    assert_eq!((service.ether_type, service.inline_tags, service.payload), (EtherType::IPV4, 2, 22));
    let one = wire::frame(&packet("alpha_tag_inline")).unwrap();
    assert_eq!((one.ether_type, one.inline_tags, one.payload), (EtherType::IPV4, 1, 18));
    let mut three = packet("alpha_tag_service");
    three.bytes[20..22].copy_from_slice(&[0x81, 0x00]);
    let three = wire::frame(&three).unwrap();
    assert_eq!((three.ether_type, three.inline_tags), (EtherType::VLAN, 2), "the third is not followed");
}

#[test]
fn transport_headers_are_found_behind_options_and_extensions() {
    let ports = |name: &str| {
        let packet = packet(name);
        wire::transport(&packet, &ip(&packet)).unwrap()
    };
    let (source, destination) = (L4Port::from(80), L4Port::from(40_000));
    assert_eq!(ports("delta_options"), Transport::Tcp { source, destination, flags: 0x12 });
    assert_eq!(ports("delta_extensions"), Transport::Tcp { source, destination, flags: 0x10 });
    assert_eq!(ports("delta_sctp"), Transport::Datagram { source, destination });
    assert_eq!(ports("delta_echo"), Transport::Icmp(Icmp::Echo { identifier: L4Port::from(7) }));
    assert_eq!(ports("delta_icmp_error"), Transport::Icmp(Icmp::Other { kind: 3 }));
    assert_eq!(ports("delta_gre"), Transport::Other);
    assert_eq!(ports("delta_fragment_later"), Transport::Later, "its payload is no header");
}

#[test]
fn fragments_are_told_apart() {
    let fragment = |name: &str| ip(&packet(name)).fragment;
    assert_eq!(fragment("delta_fragment_first"), Fragment::First);
    assert_eq!(fragment("delta_fragment_later"), Fragment::Later);
    assert_eq!(fragment("delta_fragment_v6"), Fragment::Later);
    assert_eq!(fragment("delta_atomic_fragment_v6"), Fragment::Whole);
    assert_eq!(ip(&packet("delta_atomic_fragment_v6")).protocol, Protocol::UDP);
}
