//! `ipspoofchk`: what a container says in another's name, by IPv4, IPv6 and neighbour discovery, is dropped and counted.

use std::net::IpAddr;

use crate::datagram::{ICMP, UDP, framed, packet, udp};
use crate::restrictions::{assert_talk_to_gateway, drops, lose_programs, stage, stage_of_listeners, tap};
use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, frame, says};

/// What advertises an address (RFC 4861, section 4.4): everybody is told that it is at this station.
fn advertisement(speaker: &Wire, from: IpAddr, of: IpAddr, text: &str) -> Vec<u8> {
    let IpAddr::V6(of) = of else { panic!("only IPv6 addresses are advertised so") };
    let body = [&[136, 0, 0, 0, 0x20, 0, 0, 0][..], &of.octets(), &[2, 1], &speaker.mac()].concat();
    let padded = [&body[..], &[14, 2], text.as_bytes(), &[0; 32]].concat()[..body.len() + 16].to_vec();
    let everybody = "ff02::1".parse().unwrap();
    framed([0x33, 0x33, 0, 0, 0, 1], speaker.mac(), &packet(ICMP[1], from, everybody, 255, padded))
}

/// Lies of the first container, which has the second one's address in mind, or nobody's.
pub(crate) fn lies(stage: &Stage, speaker: &Wire, listener: &Wire) -> Vec<Vec<u8>> {
    let [_, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let nobodys = ["10.77.0.99".parse().unwrap(), "fd77::99".parse().unwrap()];
    let own = stage.sandboxes[0].addresses();
    let mut lies = Vec::new();
    for (family, to) in two.addresses().into_iter().enumerate() {
        for claimed in [three.addresses()[family], nobodys[family]] {
            for destination in [listener.mac(), BROADCAST] {
                let datagram = packet(UDP, claimed, to, 64, udp([7000, 7001], b"a lie"));
                lies.push(framed(destination, speaker.mac(), &datagram));
            }
        }
    }
    for claimed in [three.addresses()[1], nobodys[1]] {
        // In one's own name about another's address, and in that one's.
        lies.extend([own[1], claimed].map(|from| advertisement(speaker, from, claimed, "a lie")));
    }
    lies
}

/// Not whoever says in an ICMP error that it has got one.
pub(crate) fn is_lie(frame: &[u8], liar: &Wire) -> bool {
    frame[6..12] == liar.mac() && says(frame, "a lie")
}

#[test]
fn packets_and_advertisements_in_anothers_name_are_dropped_and_counted() {
    let stage = stage_of_listeners("ipspoofchk");
    let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let lies = lies(&stage, &from, &to);
    for lie in &lies {
        from.send(lie);
    }
    // The same in its own name is heard.
    for (own, to_whom) in stage.sandboxes[0].addresses().into_iter().zip(stage.sandboxes[1].addresses()) {
        let datagram = packet(UDP, own, to_whom, 64, udp([7000, 7001], b"the truth"));
        from.send(&framed(to.mac(), from.mac(), &datagram));
        let seen = to.until(|frame| says(frame, "the truth"));
        assert!(!seen.iter().any(|frame| is_lie(frame, &from)), "{seen:02x?}");
    }
    let own = stage.sandboxes[0].addresses()[1];
    from.send(&advertisement(&from, own, own, "mine"));
    let seen = to.until(|frame| says(frame, "mine"));
    assert!(!seen.iter().any(|frame| is_lie(frame, &from)), "{seen:02x?}");
    let dropped = drops(&stage, "one", "address_spoofed");
    assert_eq!(dropped, lies.len() as u64, "{:?}", stage.node.agent().drops());
    stage.assert_talk(0, 1);
    stage.assert_talk(2, 0);
    assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
}

/// The kernel's bridge knows of hardware addresses only: this check holds as long as the programs are there.
#[test]
fn the_check_of_addresses_is_the_programs_alone_and_holds_again_with_the_next_agent() {
    let mut stage = stage("ipspoofchk");
    let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let lies = lies(&stage, &from, &to);
    lose_programs(&mut stage.node);
    from.send(&lies[0]);
    to.until(|frame| says(frame, "a lie"));
    stage.node.restart_agent().unwrap();
    for lie in &lies {
        from.send(lie);
    }
    from.send(&frame(to.mac(), from.mac(), "the last"));
    let seen = to.until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| is_lie(frame, &from)), "{seen:02x?}");
}
