use netlink_packet_route::link::InfoBridgePort;

use super::*;
use crate::attribute::{attribute, nested};
use crate::bridge::{PortFlags, read_port};
use crate::request::Reply as _;

fn loopback(family: u8) -> Vec<u8> {
    let mut payload = vec![family, 0, 4, 3, 1, 0, 0, 0, 0x49, 0, 1, 0, 0, 0, 0, 0];
    payload.extend(attribute(3, b"lo\0"));
    payload.extend(attribute(4, &65536u32.to_ne_bytes()));
    payload
}

#[test]
fn a_links_name_mtu_and_carrier_are_read() {
    let link = Link::read(&loopback(0)).unwrap();
    assert_eq!((link.index, link.name.as_str(), link.mtu, link.carrier), (1, "lo", 65536, true));
}

#[test]
fn a_link_without_a_link_layer_is_told_by_its_type() {
    // Ethernet, the loopback, InfiniBand, tun, IP in IP, GRE over IPv6, a modem.
    let types =
        [(1u16, false), (772, false), (32, false), (0xfffe, true), (768, true), (823, true), (519, true)];
    for (kind, bare) in types {
        let mut payload = loopback(0);
        payload[2..4].copy_from_slice(&kind.to_ne_bytes());
        assert_eq!(Link::read(&payload).unwrap().bare, bare, "{kind}");
    }
}

#[test]
fn a_link_that_was_never_up_has_no_queue() {
    for (qdisc, queued) in [(&b"noop\0"[..], false), (b"noqueue\0", false), (b"tbf\0", true)] {
        let payload = [loopback(0), attribute(6, qdisc)].concat();
        assert_eq!(Link::read(&payload).unwrap().queued, queued, "{qdisc:?}");
    }
}

#[test]
fn the_largest_packets_are_read_and_none_of_an_old_kernel() {
    assert_eq!(Link::read(&loopback(0)).unwrap().largest_packets, LargestPackets::default());
    let sizes = [(41, 131_072u32), (59, 524_280), (63, 65_536)];
    let sizes = sizes.map(|(kind, size)| attribute(kind, &size.to_ne_bytes())).concat();
    let link = Link::read(&[loopback(0), sizes].concat()).unwrap();
    assert_eq!(link.largest_packets, LargestPackets { possible: 524_280, ipv6: 131_072, ipv4: 65_536 });
}

#[test]
fn an_attribute_of_a_kernel_to_come_hides_nothing_else() {
    let unknown = [attribute(3999, b"new"), attribute(4, b"?")].concat();
    let port = [attribute(33, &[1]), attribute(1, b""), attribute(3999, b"new")].concat();
    let info = [attribute(4, b"bridge\0"), nested(5, &port), attribute(3999, b"new")].concat();
    let payload = [loopback(0), unknown, nested(18, &info), attribute(20, b"one\0")].concat();
    let link = Link::read(&payload).unwrap();
    assert_eq!((link.mtu, link.alias.as_deref(), link.port_flags.isolated), (65536, Some("one"), true));
}

#[test]
fn a_kernel_without_locked_ports_is_not_reminded_of_them() {
    assert!(PortFlags::of(&[InfoBridgePort::Isolated(true)]).locked);
    assert!(!PortFlags::of(&[InfoBridgePort::Locked(false)]).locked);
    for aside in [false, true] {
        let flags = PortFlags { hairpin: true, isolated: false, locked: true, aside };
        assert_eq!(PortFlags::of(&flags.exact()), flags);
    }
    assert!(PortFlags::default().least().is_empty());
}

#[test]
fn the_bridges_messages_about_its_ports_are_not_links() {
    let payload = loopback(7);
    assert_eq!((Link::read(&payload), read_port(&payload)), (None, Some(1)));
    assert_eq!(read_port(&loopback(0)), None);
}

#[test]
fn a_message_cut_anywhere_is_read_as_far_as_it_goes() {
    let whole = loopback(0);
    for length in 0..whole.len() {
        let _ = Link::read(&whole[..length]).map(|link| assert_eq!(link.index, 1));
    }
}
