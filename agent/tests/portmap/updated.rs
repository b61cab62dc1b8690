//! A repeated ADD with `updateExisting`: other host ports and limits in place, under the traffic of those that stay.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use serde_json::{Value, json};
use shunt_lab::{Network, Protocol, Sandbox, cni::Refusal, uninterrupted};

use crate::stage::{GATEWAY, NODE, OUTSIDE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);

/// The network as a runtime asks for it that wants these mappings, and has it updated.
fn updated(stage: &Stage, mappings: &[Value]) -> Network {
    stage.mapped(mappings).with("updateExisting", json!(true))
}

/// A repeated ADD for the `index`th container; the code and message of a refused one.
fn again(stage: &Stage, index: usize, network: &Network) -> Result<Value, (u64, String)> {
    let added = network.add(stage.node.namespace(), stage.sandboxes[index].container());
    added.map(|attachment| attachment.result).map_err(|error| {
        let refusal = error.downcast::<Refusal>().expect("the plugin's own refusal");
        (refusal.code, refusal.message)
    })
}

fn is_refused(stage: &Stage, port: u16) -> bool {
    let connect = || TcpStream::connect_timeout(&(address(NODE[0]), port).into(), PATIENCE);
    stage
        .outside
        .enter(connect)
        .unwrap()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// The host ports that the agent has.
fn ports(stage: &Stage) -> Vec<u64> {
    let mappings = stage.node.agent().ask("mappings").unwrap();
    let mut ports: Vec<_> =
        mappings.as_array().unwrap().iter().map(|one| one["host_port"].as_u64().unwrap()).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn other_host_ports_take_the_place_of_the_old_ones_and_kept_ones_keep_their_connections() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8081, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let first = stage.sandboxes[0].attachment().result.clone();
    let _echo = stage.echo(0, 7000);
    let mut kept: Vec<_> = [(Protocol::Tcp, NODE[0]), (Protocol::Tcp, NODE[1]), (Protocol::Udp, NODE[0])]
        .map(|(protocol, node)| stage.open(&stage.outside, protocol, node, 8080))
        .into();
    kept.iter_mut().for_each(|talk| talk.chat(20, 1000).unwrap());
    let network = updated(
        &stage,
        &[mapping(8080, 7000, "tcp"), mapping(8082, 7000, "tcp"), mapping(8080, 7000, "udp")],
    );
    for _ in 0..2 {
        assert_eq!(again(&stage, 0, &network).unwrap()["ips"], first["ips"]);
        assert_eq!(ports(&stage), [8080, 8080, 8082]);
        kept.iter_mut().for_each(|talk| talk.chat(20, 1000).unwrap());
    }
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8082).chat(20, 1000).unwrap();
    assert!(is_refused(&stage, 8081), "it leads nowhere any more");
    // The state file says the same: the next agent goes on with it.
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(ports(&stage), [8080, 8080, 8082]);
    kept.iter_mut().for_each(|talk| talk.chat(20, 1000).unwrap());
    again(&stage, 0, &updated(&stage, &[])).unwrap();
    assert_eq!((ports(&stage), stage.wires()), (Vec::new(), Vec::new()));
    assert!(is_refused(&stage, 8080));
}

#[test]
fn kept_connections_lose_nothing_while_host_ports_around_them_change() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    let _echo = stage.echo(0, 7000);
    let mut kept = stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080);
    std::thread::scope(|scope| {
        let talking = scope.spawn(move || kept.chat(3000, 1000));
        for round in 0..20 {
            let more = [mapping(8080, 7000, "tcp"), mapping(9000 + round, 7000, "tcp")];
            again(&stage, 0, &updated(&stage, &more[..=usize::from(round % 2)])).unwrap();
        }
        // A reset in between would have ended it.
        talking.join().unwrap().unwrap();
    });
}

#[test]
fn what_cannot_be_updated_is_refused_and_nothing_changes() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    stage.add("two", &[mapping(8090, 7000, "tcp")]);
    let before = stage.node.inventory().unwrap();
    let limited = |mappings: &[Value]| {
        updated(&stage, mappings).with("egressRate", json!(8_000_000)).with("egressBurst", json!(80_000))
    };
    let cases = [
        // Without the key, as the specification says, even where nothing would change.
        (stage.mapped(&[mapping(8080, 7000, "tcp")]), 106, "updateExisting"),
        (stage.mapped(&[mapping(8081, 7000, "tcp")]), 106, "updateExisting"),
        (updated(&stage, &[mapping(8080, 7000, "tcp"), mapping(8090, 7000, "tcp")]), 102, "pods/two/eth0"),
        // Nor does it get the limits that it asks for in one with the port.
        (limited(&[mapping(8090, 7000, "tcp")]), 102, "pods/two/eth0"),
        (updated(&stage, &[]).with("bridge", json!("cni9")), 106, "bridge"),
        (updated(&stage, &[]).with("mtu", json!(1400)), 106, "MTU"),
        (updated(&stage, &[]).with("macspoofchk", json!(true)), 106, "restrictions"),
        (updated(&stage, &[]).with("ipMasq", json!(true)), 106, "masquerade"),
        (updated(&stage, &[]).with("args", json!({ "cni": { "mac": "02:00:00:00:00:09" } })), 106, "MAC"),
        (updated(&stage, &[]).with("args", json!({ "cni": { "ips": ["10.77.0.99"] } })), 106, "address"),
    ];
    for (network, code, named) in cases {
        let (found, text) = again(&stage, 0, &network).unwrap_err();
        assert_eq!(found, code, "{named}: {text}");
        assert!(text.contains(named), "{named}: {text}");
        assert_eq!(ports(&stage), [8080, 8090], "{named}");
        assert_eq!(stage.node.inventory().unwrap().since(&before), Vec::<String>::new(), "{named}");
    }
    let reports = stage.node.agent().ask("ports").unwrap();
    assert!(reports.as_array().unwrap().iter().all(|port| port["limits"]["egress"].is_null()), "{reports}");
    let _echo = stage.echo(0, 7000);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
    // Limits and host ports in one, and both are there.
    again(&stage, 0, &limited(&[mapping(8081, 7000, "tcp")])).unwrap();
    assert_eq!(ports(&stage), [8081, 8090]);
    let reports = stage.node.agent().ask("ports").unwrap();
    let one = reports.as_array().unwrap().iter().find(|port| port["container"] == "one").unwrap();
    assert!(one["limits"]["egress"].to_string().contains("8000000"), "{one}");
}

/// A container behind `shunt-portmap`, and how it is asked for with `masqAll` and without.
fn masqueraded(stage: &Stage, masq_all: bool) -> Network {
    stage.network.clone().with("updateExisting", json!(true)).then(json!({
        "type": "shunt-portmap",
        "masqAll": masq_all,
        "agentSocket": stage.node.agent().socket(),
        "runtimeConfig": { "portMappings": [mapping(8053, 7001, "udp"), mapping(8080, 7000, "tcp")] },
    }))
}

/// As whom `server` sees a datagram of `client`, which gets its answer.
fn seen(client: &UdpSocket, server: &UdpSocket, node: SocketAddr) -> IpAddr {
    client.send_to(b"question", node).unwrap();
    let mut heard = [0; 16];
    let (length, from) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
    server.send_to(&heard[..length], from).unwrap();
    let (length, answerer) = uninterrupted(|| client.recv_from(&mut heard)).unwrap();
    assert_eq!((&heard[..length], answerer), (&b"question"[..], node));
    from.ip()
}

#[test]
fn masq_all_that_is_switched_on_and_off_shows_the_container_the_node_or_its_clients() {
    let mut stage = Stage::new();
    let plain = masqueraded(&stage, false);
    stage.sandboxes.push(Sandbox::start(&stage.lab, &stage.node, &plain, "one").unwrap());
    stage.node.settle().unwrap();
    let _echo = stage.echo(0, 7000);
    let open = |namespace: &shunt_lab::Namespace, at: SocketAddr| {
        let socket = namespace.enter(|| UdpSocket::bind(at).unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let ends: Vec<_> = NODE
        .into_iter()
        .zip(OUTSIDE)
        .zip(stage.sandboxes[0].addresses())
        .map(|((node, outside), own)| {
            let client = open(&stage.outside, (address(outside), 5555).into());
            (
                client,
                open(stage.sandboxes[0].namespace(), (own, 7001).into()),
                SocketAddr::new(address(node), 8053),
            )
        })
        .collect();
    let mut before = None;
    for masq_all in [false, true, false, true] {
        again(&stage, 0, &masqueraded(&stage, masq_all)).unwrap();
        assert_eq!(ports(&stage), [8053, 8080]);
        // The client's port is the same each time: what it was given before does not hold it.
        for (client, server, node) in &ends {
            let gateway = address(GATEWAY[usize::from(node.is_ipv6())]);
            let expected = if masq_all { gateway } else { client.local_addr().unwrap().ip() };
            for _ in 0..3 {
                assert_eq!(seen(client, server, *node), expected, "masqAll {masq_all}");
            }
        }
        // What the container knows by another name it cannot go on with.
        if let Some(mut old) = before.replace(stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080)) {
            assert!(old.chat(1, 1000).is_err());
        }
        before.as_mut().unwrap().chat(20, 1000).unwrap();
    }
}

#[test]
fn a_chain_that_is_asked_again_keeps_its_host_ports_and_their_connections_all_the_while() {
    let mut stage = Stage::new();
    let network = masqueraded(&stage, false);
    stage.sandboxes.push(Sandbox::start(&stage.lab, &stage.node, &network, "one").unwrap());
    stage.node.settle().unwrap();
    let _echo = stage.echo(0, 7000);
    let mut kept = stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080);
    std::thread::scope(|scope| {
        let talking = scope.spawn(move || kept.chat(3000, 1000));
        for _ in 0..20 {
            again(&stage, 0, &network).unwrap();
        }
        talking.join().unwrap().unwrap();
    });
}
