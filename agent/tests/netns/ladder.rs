//! The rungs of the ladder of kernels: how programs are attached, and by which way packets get into a container.

use shunt_agent_api::ProgramMode;
use shunt_lab::Protocol;

use crate::stage::Stage;

/// Linux by its numbers, as `(6, 12)`.
fn linux() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// What the kernel itself says of a container's port: filters, and links.
fn attached(stage: &Stage, container: &str) -> (usize, usize) {
    let port = stage.node.agent().port(container).unwrap().host_ifname;
    let show = |direction: &str| {
        stage.node.namespace().command("tc", &["filter", "show", "dev", &port, direction]).unwrap()
    };
    let filters = ["ingress", "egress"].map(show).concat();
    let net = stage.node.namespace().command("bpftool", &["--json", "net", "show", "dev", &port]).unwrap();
    let net: serde_json::Value = serde_json::from_str(&net).unwrap();
    let hooks = net[0]["tc"].as_array().into_iter().flatten();
    let links = hooks.filter(|hook| hook["kind"].as_str().is_some_and(|kind| kind.starts_with("tcx/")));
    (filters.matches("direct-action").count(), links.count())
}

#[test]
fn programs_are_on_links_since_6_6_and_on_filters_before_and_packets_take_the_fast_path_by_both() {
    let stage = Stage::set();
    let expected = if linux() >= (6, 6) { ProgramMode::Tcx } else { ProgramMode::Clsact };
    let programs = stage.node.agent().status().unwrap().programs;
    assert!(programs.len() > 6, "{programs:?}");
    assert!(programs.iter().all(|program| program.mode == expected), "{programs:?}");
    let (filters, links) = attached(&stage, "one");
    println!("Linux {:?}: {expected:?}, {filters} filters and {links} links at a port", linux());
    match expected {
        ProgramMode::Clsact => assert_eq!((filters, links), (2, 0)),
        _ => assert_eq!(filters, 0),
    }

    let echo = stage.echo(1, 7000);
    let mut talk = stage.sandboxes[0].talk_to(Protocol::Udp, &echo).unwrap();
    talk.say(100).unwrap();
    let fast = || stage.node.agent().port("one").unwrap().from.fast;
    let before = fast();
    talk.chat(100, 1000).unwrap();
    assert!(fast() - before >= 100);
}
