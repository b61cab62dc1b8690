//! The rungs of the ladder of kernels: how programs are attached, and by which way packets get into a container.

use shunt_agent_api::ProgramMode;
use shunt_lab::{Lacking, Protocol, skip};

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

/// Not every kernel has this queue; where it has, it is what shapers and operators put onto a port first.
#[test]
fn what_goes_to_a_port_with_a_queue_of_fq_waits_there() {
    let stage = Stage::set();
    let port = stage.node.agent().port("two").unwrap().host_ifname;
    let tc = |arguments: &[&str]| stage.node.namespace().command("tc", arguments);
    if let Err(error) = tc(&["qdisc", "replace", "dev", &port, "root", "fq"]) {
        assert!(format!("{error:#}").contains("fq"), "{error:#}");
        return skip(Lacking::Kernel("sch_fq"));
    }
    let sent = || {
        let said = tc(&["-json", "-statistics", "qdisc", "show", "dev", &port, "root"]).unwrap();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said[0]["kind"], "fq");
        said[0]["packets"].as_u64().unwrap()
    };
    let echo = stage.echo(1, 7000);
    let mut talk = stage.sandboxes[0].talk_to(Protocol::Udp, &echo).unwrap();
    // The agent hears of the queue from the kernel.
    let mut waited = 0;
    for _ in 0..100 {
        let before = sent();
        talk.chat(50, 1000).unwrap();
        waited = sent() - before;
        if waited >= 50 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(waited >= 50, "{waited} of 50 have met the queue");
    let before = stage.node.agent().port("one").unwrap().from.fast;
    talk.chat(50, 1000).unwrap();
    assert!(
        stage.node.agent().port("one").unwrap().from.fast - before >= 50,
        "by the fast path all the same"
    );
}
