//! Who asks for a container's address is answered, and by the same bytes as by a bridge whose ports suppress what asks for
//! neighbours that the node knows (`bridge link set ... neigh_suppress on`).

use serde_json::json;
use shunt_lab::Lab;

use crate::frames::{Host, Sent};
use crate::packets::{self, Hosts};
use crate::twins::{Manner, Ours, Plain, differences};
use crate::wire::{BROADCAST, Mac, tagged};

/// The one that asks. A bridge with suppressing ports leaves alone what comes by one of them, so this one's is none.
const ASKER: usize = 0;

/// Ports that are all in one VLAN.
const VLAN: u16 = 10;

/// The group that hears who asks for an address (RFC 4291 section 2.7.1), and its stations'.
fn solicited([.., a, b, c]: [u8; 16]) -> ([u8; 16], Mac) {
    ([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c], [0x33, 0x33, 0xff, a, b, c])
}

/// What asks for each of the others, and what asks for nobody who is there.
fn questions(hosts: &[Host]) -> Vec<Sent> {
    let asker = hosts[ASKER];
    let ends = Hosts { from: (asker.v4, asker.v6), to: (asker.v4, asker.v6), mac: asker.mac };
    let nobody = Host {
        mac: [0; 6],
        v4: [10, 78, 0, 99],
        v6: [0xfd, 0x78, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x99],
    };
    let mut sent = Vec::new();
    let mut send = |name: String, to: Mac, kind: [u8; 2], payload: Vec<u8>| {
        let bytes = [&to[..], &asker.mac, &kind, &payload].concat();
        sent.push(Sent { name, from: ASKER, bytes });
    };
    for (index, host) in hosts.iter().chain([&nobody]).enumerate().filter(|(index, _)| *index != ASKER) {
        let ends = Hosts { to: (host.v4, host.v6), ..ends };
        send(
            format!("who has the IPv4 address of {index}"),
            BROADCAST,
            packets::ARP,
            packets::request(&ends),
        );
        let (group, mac) = solicited(host.v6);
        send(
            format!("who has the IPv6 address of {index}"),
            mac,
            packets::IPV6,
            packets::solicitation(&ends, group),
        );
    }
    sent
}

/// Everybody hears a question on a bridge; with us nobody does whom it does not concern.
fn is_question(sent: &Sent) -> bool {
    sent.name.starts_with("who has")
}

#[test]
fn who_asks_for_a_container_is_answered_as_by_a_bridge_that_suppresses_questions() {
    let lab = Lab::new().unwrap();
    let suppress: fn(usize) -> &'static [&'static str] =
        |index| if index == ASKER { &[] } else { &["neigh_suppress", "on"] };
    let manner = Manner { keys: |_| Vec::new(), flags: suppress };
    let ours = Ours::start(&lab, &manner);
    let plain = Plain::like(&lab, &ours, &manner);
    for host in &ours.hosts {
        plain.knows(host);
    }
    let sent = questions(&ours.hosts);
    let (by_us, by_it) = (ours.side.pass(&sent), plain.side.pass(&sent));
    let found = differences(&sent, (&by_us, &by_it), is_question);
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    // An answer for each of three containers over each IP, and nobody else hears a word but of who is not there.
    assert_eq!(by_us[ASKER].len(), 6, "{:02x?}", by_us[ASKER]);
    let nobody = sent.iter().filter(|sent| sent.name.ends_with("of 4")).count();
    assert!(by_us[1..].iter().all(|heard| heard.len() == nobody), "{:02x?}", &by_us[1..]);
    assert!(by_it.last().unwrap().len() > nobody, "the plain bridge hands its node every question");
}

#[test]
fn who_asks_in_a_vlan_is_answered_in_its_form() {
    let lab = Lab::new().unwrap();
    let manner = Manner {
        keys: |index| {
            let vlans = if index == ASKER {
                json!({ "untagged": 5, "tagged": [VLAN] })
            } else {
                json!({ "untagged": VLAN })
            };
            // Whose addresses are checked is known by address in its VLAN, too.
            vec![("vlans", vlans), ("ipspoofchk", json!(true))]
        },
        flags: |_| &[],
    };
    let mut ours = Ours::start(&lab, &manner);
    ours.side.vlan = Some(VLAN);
    for question in questions(&ours.hosts) {
        let bytes = tagged(VLAN, question.bytes.clone());
        let heard = ours.side.pass(&[Sent { bytes, ..question.clone() }]);
        let asked = question.name.rsplit(' ').next().and_then(|index| index.parse::<usize>().ok()).unwrap();
        let answered = asked < ours.hosts.len();
        assert_eq!(heard[ASKER].len(), usize::from(answered), "{}: {heard:02x?}", question.name);
        if let [answer] = &heard[ASKER][..] {
            assert_eq!(answer[..6], ours.hosts[ASKER].mac, "{}", question.name);
            assert_eq!(answer[6..12], ours.hosts[asked].mac, "{}", question.name);
            assert_eq!(answer[12..16], [0x81, 0, 0, VLAN as u8], "{}", question.name);
        }
        let others = heard[1..].iter().map(Vec::len).sum::<usize>();
        assert_eq!(others, if answered { 0 } else { 3 }, "{}: {heard:02x?}", question.name);
    }
}
