//! The same frames through both twins: what comes out of every port is the same.

use serde_json::json;
use shunt_lab::Lab;

use crate::frames::{self, Sent};
use crate::twins::{Manner, Ours, Plain, differences};

/// So many are sent before anybody listens.
const AT_ONCE: usize = 16;

/// Sent by one container in the name of another, or of the bridge. On a restricted port such frames are shut out; a plain
/// bridge does not mind.
pub(crate) fn is_a_lie(sent: &Sent, ours: &Ours) -> bool {
    let named = |mac: &[u8]| sent.bytes[6..12] == *mac;
    let others = ours.hosts.iter().enumerate().filter(|(index, _)| *index != sent.from);
    named(&ours.bridge_mac()) || others.into_iter().any(|(_, host)| named(&host.mac))
}

fn assert_alike(manner: &Manner, may_be_lost: fn(&Sent, &Ours) -> bool) {
    let lab = Lab::new().unwrap();
    let ours = Ours::start(&lab, manner);
    let plain = Plain::like(&lab, &ours, manner);
    let sent = frames::all(&ours.hosts, ours.bridge_mac());
    assert_all_alike(&ours, &plain, &sent, |sent| may_be_lost(sent, &ours));
}

/// What `may_be_lost` may be missing on our side.
pub(crate) fn assert_all_alike(
    ours: &Ours,
    plain: &Plain,
    sent: &[Sent],
    may_be_lost: impl Fn(&Sent) -> bool + Copy,
) {
    // A bridge answers no questions unless it is told to: what it says then is for `answers`.
    let sent: Vec<_> =
        sent.iter().filter(|sent| sent.name != "an ARP request to everybody").cloned().collect();
    assert!(sent.len() >= 200, "only {} frames", sent.len());
    let (mut found, mut heard) = (Vec::new(), 0);
    for some in sent.chunks(AT_ONCE) {
        let (by_us, by_it) = (ours.side.pass(some), plain.side.pass(some));
        heard += by_us.iter().map(Vec::len).sum::<usize>();
        found.extend(differences(some, (&by_us, &by_it), may_be_lost));
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    assert!(heard > 200, "only {heard} frames came out");
    let ports = ours.node.agent().ports().unwrap();
    let fast: u64 = ports.iter().map(|port| port.from.fast).sum();
    assert!(fast > 20, "nothing took the fast path: {ports:?}");
}

#[test]
fn open_ports_hear_what_they_would_hear_on_a_plain_bridge() {
    assert_alike(&Manner { keys: |_| Vec::new(), flags: |_| &[] }, |_, _| false);
}

#[test]
fn isolated_ports_hear_what_they_would_hear_on_a_plain_bridge() {
    let manner = Manner {
        keys: |index| vec![("portIsolation", json!([1, 2].contains(&index)))],
        flags: |index| if [1, 2].contains(&index) { &["isolated", "on"] } else { &[] },
    };
    assert_alike(&manner, is_a_lie);
}

#[test]
fn checked_ports_hear_what_they_would_hear_on_a_bridge_with_locked_ports() {
    let manner = Manner {
        keys: |_| vec![("macspoofchk", json!(true))],
        flags: |_| &["locked", "on", "learning", "off"],
    };
    assert_alike(&manner, |_, _| false);
}

/// What would come back to its sender's port to mislead a bridge inside the container: to a group or to nobody, or of another station.
fn comes_back(sent: &Sent, ours: &Ours) -> bool {
    let is_known = |mac: &[u8]| ours.hosts.iter().any(|host| host.mac == *mac);
    let own = ours.hosts[sent.from].mac;
    sent.bytes[0] & 1 == 1 || !is_known(&sent.bytes[..6]) || sent.bytes[6..12] != own
}

#[test]
fn hairpin_ports_hear_what_they_would_hear_on_a_plain_bridge() {
    let manner = Manner { keys: |_| vec![("hairpinMode", json!(true))], flags: |_| &["hairpin", "on"] };
    assert_alike(&manner, comes_back);
}
