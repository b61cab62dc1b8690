//! What admission says when the link itself is in the way.

use shunt_agent_api::{Bandwidth, ErrorKind};

use crate::capacity::{ENFORCED, capacity, configured, free, limited};

#[test]
fn a_rate_above_the_link_is_refused_even_when_all_of_it_is_left() {
    let mut rig = configured(ENFORCED);
    let mut port = rig.container(2);
    port.bandwidth = limited(100_000_001);
    let refused = rig.attach(&port).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Capacity);
    assert!(refused.message.contains("100M of 100M bit/s left"), "{refused:?}");
    port.bandwidth = limited(100_000_000);
    rig.attach(&port).unwrap();
    assert_eq!(free(&rig), 0);
}

#[test]
fn an_uplink_that_disappears_while_it_is_allocated_keeps_what_it_has_given_and_gives_no_more() {
    let mut rig = configured(ENFORCED);
    let [mut first, mut second] = [2, 3].map(|number| rig.container(number));
    first.bandwidth = limited(70_000_000);
    rig.attach(&first).unwrap();
    rig.ip(&["link", "delete", "eth1"]);
    let uplink = capacity(&rig).uplinks.remove(0);
    assert_eq!((uplink.ingress.total, uplink.ingress.allocated, uplink.ingress.free), (0, 70_000_000, 0));
    assert!(!rig.status().healthy);
    // Whoever has a limit keeps it, and whoever asks for none is served.
    rig.check(&first).unwrap();
    second.bandwidth = limited(1_000_000);
    let refused = rig.attach(&second).unwrap_err();
    assert!(
        refused.kind == ErrorKind::Capacity && refused.message.contains("there is no such link"),
        "{refused:?}"
    );
    second.bandwidth = Bandwidth::default();
    rig.attach(&second).unwrap();
    rig.ip(&["link", "add", "eth1", "type", "bridge"]);
    assert_eq!(free(&rig), 30_000_000);
    rig.detach(&first);
    assert_eq!(free(&rig), 100_000_000);
    assert!(rig.status().healthy);
}
