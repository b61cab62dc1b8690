//! Host ports that the kernel opens, and what becomes of their connections: a container goes, who opens changes, somebody flushes all rules.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shunt_lab::{Echo, Namespace, Protocol, patience};

use crate::heeded::nft;
use crate::opened::{BOTH, HEED, HOST_PORT, INNER_PORT, NODE, Opened, published};

/// By which the kernel opens host ports while others have rules, and the programs masquerade whoever has.
const AUTO: &str = "filters = 'auto'\nfilter_host_ports = true\nmasquerade = 'programs'";

/// Rules that what comes to host ports meets.
const RULES: &str =
    "table inet engine { chain forward { type filter hook forward priority 0; th dport 7001 drop; }; }";

/// How long a datagram may take.
const ANSWER: Duration = Duration::from_secs(3);

/// How long host ports may be closed once somebody has flushed all rules.
const FLUSHED: Duration = Duration::from_millis(1500);

fn echoes(opened: &Opened) -> Vec<Echo> {
    let two = &opened.stage.sandboxes[1];
    two.addresses().into_iter().map(|ip| two.echo(ip, INNER_PORT).unwrap()).collect()
}

fn socket(namespace: &Namespace, ip: IpAddr, port: u16) -> UdpSocket {
    let socket = namespace.enter(|| UdpSocket::bind((ip, port))).unwrap().unwrap();
    socket.set_read_timeout(Some(patience(ANSWER))).unwrap();
    socket
}

/// The reset comes from the node: connection tracking has forgotten the container that is gone, whose host port is nobody's now. The other host port keeps our
/// chains, without which no entry would matter.
#[test]
fn clients_of_a_container_that_is_gone_are_reset() {
    let mut opened = Opened::without_host_port(HEED);
    let other = published(&opened.stage.network, 8002, 7002);
    opened.add_to(&other, "other");
    opened.add("two");
    opened.stage.node.settle().unwrap();
    opened.until_opened(true);
    let two = &opened.stage.sandboxes[2];
    let echoes: Vec<_> = two.addresses().into_iter().map(|ip| two.echo(ip, INNER_PORT).unwrap()).collect();
    let mut talks = Vec::new();
    for from in [&opened.outside, opened.stage.node.namespace()] {
        for to in NODE {
            let mut talk = opened.talk(from, Protocol::Tcp, to).unwrap();
            talk.chat(3, 100).unwrap();
            talks.push((to, talk));
        }
    }
    let gone = opened.stage.sandboxes.pop().expect("a container");
    gone.delete(&opened.stage.node, &opened.published).unwrap();
    drop(echoes);
    for (to, mut talk) in talks {
        let error = talk.chat(1, 100).expect_err("nobody is there");
        let kind = error.root_cause().downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        assert_eq!(kind, Some(ErrorKind::ConnectionReset), "{to}: {error:#}");
    }
    // The next container with the host port is not taken for the last.
    opened.add("next");
    let next = opened.stage.sandboxes.last().expect("a container");
    let _echoes: Vec<_> = next.addresses().into_iter().map(|ip| next.echo(ip, INNER_PORT).unwrap()).collect();
    for to in NODE {
        for protocol in BOTH {
            assert!(opened.is_answered(&opened.outside, protocol, to), "{to} by {protocol:?}");
        }
    }
}

/// The kernel carries to their end the datagrams that it has led, whoever of the two speaks first once the programs open.
#[test]
fn a_server_that_speaks_first_keeps_its_port_once_the_programs_open_again() {
    let opened = Opened::masqueraded(AUTO);
    nft(&opened.stage, RULES);
    opened.until_opened(true);
    let two = &opened.stage.sandboxes[1];
    let mut flows = Vec::new();
    for (inner, to) in two.addresses().into_iter().zip(NODE) {
        let asked: SocketAddr = SocketAddr::new(to.parse().unwrap(), HOST_PORT);
        let any: IpAddr = if to.contains(':') { [0u16; 8].into() } else { [0u8; 4].into() };
        let (server, client) = (socket(two.namespace(), inner, INNER_PORT), socket(&opened.outside, any, 0));
        client.send_to(b"word", asked).unwrap();
        let (_, peer) = server.recv_from(&mut [0; 9]).unwrap();
        flows.push((server, client, asked, peer));
    }
    nft(&opened.stage, "delete table inet engine");
    opened.until_opened(false);
    for (server, client, asked, peer) in flows {
        server.send_to(b"first", peer).unwrap();
        let (_, from) = client.recv_from(&mut [0; 9]).unwrap();
        assert_eq!(from, asked, "the port that was asked");
        client.send_to(b"then", asked).unwrap();
        assert_eq!(server.recv_from(&mut [0; 9]).unwrap().1, peer);
    }
}

/// Tells whoever goes on until then, also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Flushes all rules again and again while somebody asks, and waits until both families are answered.
#[test]
fn a_flush_of_all_rules_under_traffic_costs_no_more_than_a_look() {
    let opened = Opened::set(HEED);
    opened.until_opened(true);
    let _echoes = echoes(&opened);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // What comes without our rules is refused.
                for to in NODE {
                    opened.is_answered(&opened.outside, Protocol::Tcp, to);
                }
            }
        });
        let over = Over(&is_over);
        let mut took = Vec::new();
        for _ in 0..5 {
            nft(&opened.stage, "flush ruleset");
            let flushed = Instant::now();
            while !opened.is_led() && flushed.elapsed() < patience(4 * FLUSHED) {
                thread::sleep(Duration::from_millis(5));
            }
            took.push(flushed.elapsed());
            // One that asked meanwhile sends again what was lost.
            opened.until("host ports are back", || {
                NODE.iter().all(|to| opened.is_answered(&opened.outside, Protocol::Tcp, to))
            });
        }
        drop(over);
        println!("our rules were back after {took:?}");
        // A busy machine may delay one of the looks.
        let late = took.iter().filter(|took| **took >= patience(FLUSHED)).count();
        assert!(late <= 1 && took.iter().all(|took| *took < patience(2 * FLUSHED)), "{took:?}");
    });
}

/// Whoever flushes all rules takes away others' as well: who opens is asked anew.
#[test]
fn who_opens_is_asked_anew_after_a_flush() {
    let opened = Opened::set("filters = 'auto'\nfilter_host_ports = true");
    let _echoes = echoes(&opened);
    for _ in 0..2 {
        nft(&opened.stage, RULES);
        opened.until_opened(true);
        nft(&opened.stage, "flush ruleset");
        opened.until_opened(false);
        for to in NODE {
            for protocol in BOTH {
                assert!(opened.is_answered(&opened.outside, protocol, to), "{to} by {protocol:?}");
            }
        }
    }
}

/// The next agent goes by what the programs know, and not by a table that somebody has flushed.
#[test]
fn what_the_kernel_has_opened_outlives_a_flush_while_no_agent_runs() {
    let mut opened = Opened::set("filters = 'auto'\nfilter_host_ports = true");
    let _echoes = echoes(&opened);
    nft(&opened.stage, RULES);
    opened.until_opened(true);
    let mut talks = Vec::new();
    for to in NODE {
        for protocol in BOTH {
            let mut talk = opened.talk(&opened.outside, protocol, to).unwrap();
            talk.chat(3, 100).unwrap();
            talks.push(talk);
        }
    }
    // A delayed acknowledgment that came behind the flush would be answered by the node, which has no such connection.
    thread::sleep(Duration::from_millis(300));
    opened.stage.node.agent_mut().kill().unwrap();
    nft(&opened.stage, "flush ruleset");
    opened.stage.node.restart_agent().unwrap();
    // Who sends before then is answered by the node, which has no such connection.
    let node = opened.stage.node.namespace();
    let chain = ["list", "chain", "inet", "shunt", "prerouting"];
    opened.until("our rules are back", || node.command("nft", &chain).is_ok());
    for talk in &mut talks {
        talk.chat(3, 100).unwrap();
    }
    opened.until_opened(false);
    for talk in &mut talks {
        talk.chat(3, 100).unwrap();
    }
}
