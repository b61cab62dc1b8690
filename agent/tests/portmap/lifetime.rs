//! How long a host port leads to a container: from its ADD to its DEL, whoever else comes and goes.

use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use shunt_dataplane::abi::ABI_VERSION;
use shunt_lab::{Lab, Protocol};

use crate::errors::{any_like, error_from};
use crate::stage::{NODE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_deleted_containers_port_is_free_and_leads_to_the_next_one() {
    let mut stage = Stage::new();
    let before = stage.node.inventory().unwrap();
    for id in ["one", "two"] {
        stage.add(id, &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
        let echo = stage.echo(0, 7000);
        assert_eq!(stage.wires(), ["cni0", "up0"]);
        let mut udp = stage.open(&stage.outside, Protocol::Udp, NODE[0], 8080);
        udp.chat(5, 500).unwrap();
        stage.open(&stage.outside, Protocol::Tcp, NODE[1], 8080).chat(5, 500).unwrap();
        drop(echo);
        stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
        let refused = stage
            .outside
            .enter(|| TcpStream::connect_timeout(&(address(NODE[0]), 8080).into(), PATIENCE))
            .unwrap();
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused, "{id}");
        // Nobody has the port of the node now: its kernel says so of datagrams.
        for name in NODE.map(address) {
            let socket = stage.outside.enter(|| UdpSocket::bind(any_like(name)).unwrap()).unwrap();
            let error = error_from(&socket, (name, 8080).into());
            assert_eq!(error, std::io::ErrorKind::ConnectionRefused, "{id} by {name}");
        }
        assert_eq!(stage.wires(), Vec::<String>::new(), "nothing runs where nothing leads");
    }
    stage.wait_until("nothing is left but the bridge", |_| {
        let left = stage.node.inventory().unwrap().since(&before);
        left.iter().all(|line| line.contains("cni0"))
    });
}

#[test]
fn a_client_that_sends_on_reaches_the_container_that_has_the_port_now() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let mut echo = stage.echo(0, 7000);
    let mut talks = NODE.map(|node| stage.open(&stage.outside, Protocol::Udp, node, 8080));
    talks.iter_mut().for_each(|udp| udp.chat(5, 500).unwrap());
    echo.clear();
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    // Another keeps the address busy, so that the next one has another.
    stage.add("other", &[]);
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(1, 7000);
    for udp in &mut talks {
        udp.chat(5, 500).unwrap_or_else(|error| panic!("the same socket, the new container: {error:#}"));
    }
}

#[test]
fn connections_outlive_the_agent_and_go_on_with_the_next_one() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let mut talks: Vec<_> = [(Protocol::Tcp, NODE[0]), (Protocol::Tcp, NODE[1]), (Protocol::Udp, NODE[0])]
        .map(|(protocol, node)| stage.open(&stage.outside, protocol, node, 8080))
        .into();
    talks.iter_mut().for_each(|talk| talk.chat(20, 1000).unwrap());
    stage.node.agent_mut().kill().unwrap();
    talks.iter_mut().for_each(|talk| talk.chat(20, 1000).unwrap());
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
    stage.node.restart_agent().unwrap();
    talks.iter_mut().for_each(|talk| talk.chat(20, 1000).unwrap());
    stage.open(&stage.outside, Protocol::Tcp, NODE[1], 8080).chat(20, 1000).unwrap();
    assert_eq!(stage.wires(), ["cni0", "up0"]);
    // It knows whose port it is, too.
    let (code, text) = stage.refused(&stage.mapped(&[mapping(8080, 80, "tcp")]), "two");
    assert_eq!(code, 102, "{text}");
}

#[test]
fn a_new_agent_takes_away_what_leads_to_containers_that_are_gone() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    stage.node.agent_mut().kill().unwrap();
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(stage.wires(), Vec::<String>::new());
    let refused = stage
        .outside
        .enter(|| TcpStream::connect_timeout(&(address(NODE[0]), 8080).into(), PATIENCE))
        .unwrap();
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    stage.add("two", &[mapping(8080, 7000, "tcp")]);
    let _echo = stage.echo(0, 7000);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
}

#[test]
fn programs_that_come_late_come_with_the_first_host_port_and_are_taken_over_with_their_pins() {
    let mut stage = Stage::with(Lab::new().unwrap(), &[]);
    let pinned = |stage: &Stage| {
        let directory = stage.node.agent().bpffs().join(format!("v{ABI_VERSION}/programs"));
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.contains("mapped") || name.contains("wire"));
        names.sort();
        names
    };
    stage.add("none", &[]);
    assert_eq!(pinned(&stage), [""; 0], "a node without host ports has no use for them");
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    assert_eq!(pinned(&stage), ["from_mapped", "from_wire", "to_wire"]);
    let ids = |stage: &Stage| {
        let programs = stage.node.agent().status().unwrap().programs.into_iter();
        let mut ids: Vec<_> = programs
            .filter(|program| ["from_mapped", "from_wire", "to_wire"].contains(&program.name.as_str()))
            .map(|program| (program.name, program.ifname, program.id))
            .collect();
        ids.sort();
        ids
    };
    let before = ids(&stage);
    assert!(before.len() >= 2 && before.iter().all(|(.., id)| *id != 0), "{before:?}");
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(ids(&stage), before, "the same programs serve on");
}
