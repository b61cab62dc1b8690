use std::time::Instant;

use shunt_agent_api::{Limits, PortReport, Traffic};

use super::*;
use crate::cli::top::rates::Readout;
use crate::cli::top::rates::tests::{drop_report, port, sample};

/// Three ports: "one" sends, "two" is sent and drops, "three" does nothing.
fn ports() -> Vec<PortRates> {
    let begun = Instant::now();
    let names = ["one", "two", "three"];
    let then = sample(begun, 0, names.map(port).to_vec());
    let sent = Traffic { packets: 10, bytes: 1_000, fast: 10, kernel: 0, dropped: 0 };
    let received = Traffic { packets: 5, bytes: 2_000, fast: 0, kernel: 5, dropped: 3 };
    let limits = Limits { egress: Some(8_000), ingress: None };
    let one = PortReport { from: sent, limits, ..port("one") };
    let two = PortReport { to: received, namespace: "Team".into(), pod: "web".into(), ..port("two") };
    let mut now = sample(begun, 1, vec![one, two, port("three")]);
    now.drops = vec![drop_report("isolated", "veth-two", 3)];
    Readout::between(Some(&then), &now).ports
}

fn shown(selection: &Selection) -> Vec<String> {
    selection.of(&ports()).into_iter().map(|port| port.container.clone()).collect()
}

#[test]
fn figures_begin_with_the_highest_and_names_with_the_first() {
    // Those of one figure follow by name: Team/web, pods/one, pods/three.
    for (key, order) in [
        (Key::Traffic, ["two", "one", "three"]),
        (Key::Sent, ["one", "two", "three"]),
        (Key::Received, ["two", "one", "three"]),
        (Key::Fast, ["one", "two", "three"]),
        (Key::Kernel, ["two", "one", "three"]),
        (Key::Dropped, ["two", "one", "three"]),
        (Key::Limit, ["one", "two", "three"]),
        (Key::Name, ["two", "one", "three"]),
    ] {
        let by = Selection { key, ..Selection::default() };
        let mut expected = order;
        assert_eq!(shown(&by), expected, "{key:?}");
        expected.reverse();
        assert_eq!(shown(&Selection { is_reversed: true, ..by }), expected, "{key:?}");
    }
}

#[test]
fn a_filter_finds_names_in_any_case_and_reasons() {
    for (filter, found) in [
        ("", vec!["two", "one", "three"]),
        ("TEAM/W", vec!["two"]),
        ("veth-th", vec!["three"]),
        ("isolated", vec!["two"]),
        ("nobody", Vec::new()),
    ] {
        assert_eq!(shown(&Selection { filter: filter.into(), ..Selection::default() }), found, "{filter}");
    }
    assert_eq!(shown(&Selection { throttled_only: true, ..Selection::default() }), ["one"]);
}

#[test]
fn stepping_through_the_keys_comes_back() {
    let mut key = Key::default();
    let mut names = vec![key.name()];
    while key.step(1) != Key::default() {
        key = key.step(1);
        names.push(key.name());
    }
    assert_eq!(names.len(), Key::value_variants().len());
    assert_eq!((names[0].as_str(), Key::default().step(-1)), ("traffic", Key::Name));
}
