//! Who looks for a container is answered by the programs, and nobody else hears of it.

use shunt_lab::{Conversation, Namespace, Protocol};

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, frame, says};

/// What is known of neighbours is forgotten.
fn forget(namespace: &Namespace, ifname: &str) {
    for family in ["-4", "-6"] {
        namespace.command("ip", &[family, "neighbour", "flush", "dev", ifname]).unwrap();
    }
}

/// An ARP request or a neighbour solicitation.
fn asks(frame: &[u8]) -> bool {
    let is = |at: usize, bytes: &[u8]| frame.get(at..at + bytes.len()) == Some(bytes);
    is(12, &[0x08, 0x06]) && is(20, &[0, 1]) || is(12, &[0x86, 0xdd]) && is(20, &[58]) && is(54, &[135])
}

/// What the bystander has heard of questions by the time that a last word reaches it.
fn overheard(bystander: &Wire, speaker: &Wire) -> Vec<Vec<u8>> {
    speaker.send(&frame(BROADCAST, speaker.mac(), "the last word"));
    let mut heard = bystander.until(|frame| says(frame, "the last word"));
    heard.retain(|frame| asks(frame));
    heard
}

#[test]
fn containers_and_the_node_find_each_other_and_no_third_one_hears_of_it() {
    let stage = Stage::set();
    let (speaker, bystander) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[2]));
    // Whatever they had to say when they came has been said.
    overheard(&bystander, &speaker);
    for index in [0, 1] {
        forget(stage.sandboxes[index].namespace(), "eth0");
    }
    forget(stage.node.namespace(), "cni0");
    stage.assert_talk(0, 1);
    for address in stage.sandboxes[1].addresses() {
        let echo = stage.sandboxes[1].echo(address, 7200).unwrap();
        let mut talk = Conversation::open(stage.node.namespace(), Protocol::Tcp, echo.address()).unwrap();
        talk.chat(5, 500).unwrap();
    }
    let heard = overheard(&bystander, &speaker);
    assert!(
        heard
            .iter()
            .all(|frame| !stage.sandboxes[1].addresses().iter().any(|address| names(frame, *address))),
        "{heard:02x?}"
    );
    // It was asked, and the answer is the container's own address.
    let mac: String = tap(&stage.sandboxes[1]).mac().map(|byte| format!("{byte:02x}")).join(":");
    let known = |namespace: &Namespace| namespace.command("ip", &["neighbour", "show"]).unwrap();
    for (who, known) in
        [("a container", known(stage.sandboxes[0].namespace())), ("the node", known(stage.node.namespace()))]
    {
        for address in stage.sandboxes[1].addresses() {
            let line = known.lines().find(|line| line.starts_with(&format!("{address} ")));
            assert!(line.is_some_and(|line| line.contains(&mac)), "{who} and {address}:\n{known}");
        }
    }
}

/// Whether a question is for this address.
fn names(frame: &[u8], address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => frame.get(38..42) == Some(&v4.octets()[..]),
        std::net::IpAddr::V6(v6) => frame.get(62..78) == Some(&v6.octets()[..]),
    }
}

/// An address that is looked for on the link first would do nothing for two seconds, and what the node connects to meanwhile would
/// see it come from `::1`.
#[test]
fn the_gateways_address_works_as_soon_as_the_first_container_is_there() {
    let mut stage = Stage::empty();
    stage.add("one");
    let gateway = stage.node.namespace().command("ip", &["-6", "address", "show", "dev", "cni0"]).unwrap();
    assert!(
        gateway.contains("fd77::1/64") && !gateway.contains("fd77::1/64 scope global tentative"),
        "{gateway}"
    );
    let address = stage.sandboxes[0].attachment().ipv6().unwrap().into();
    let echo = stage.sandboxes[0].echo(address, 7200).unwrap();
    let mut talk = Conversation::open(stage.node.namespace(), Protocol::Tcp, echo.address()).unwrap();
    talk.chat(5, 500).unwrap();
}

#[test]
fn a_probe_for_a_duplicate_reaches_whoever_has_the_address() {
    let stage = Stage::set();
    let (prober, owner) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let address = stage.sandboxes[1].attachment().ipv4().unwrap().octets();
    // RFC 5227, section 2.1.1: from nobody's address.
    let body = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &prober.mac(), &[0; 4], &[0; 6], &address].concat();
    let probe = [&BROADCAST[..], &prober.mac(), &[0x08, 0x06], &body].concat();
    prober.send(&probe);
    owner.until(|frame| frame.get(..42) == Some(&probe[..]));
    // And its own stack says so.
    prober.until(|frame| {
        frame.get(12..14) == Some(&[0x08, 0x06]) && frame.get(28..32) == Some(&address[..]) && frame[21] == 2
    });
}
