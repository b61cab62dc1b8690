//! Metrics over HTTP, beside everything else that the agent does.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use shunt_lab::uninterrupted;

use crate::rig::{PATIENCE, Rig};

pub(crate) const ADDRESS: &str = "127.0.0.1:9464";

fn connect(rig: &Rig) -> TcpStream {
    let address: SocketAddr = ADDRESS.parse().unwrap();
    let stream = rig.node.enter(|| TcpStream::connect_timeout(&address, PATIENCE)).unwrap().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What the agent answers, until it closes the connection.
fn say(rig: &Rig, request: &str) -> String {
    let mut stream = connect(rig);
    stream.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match uninterrupted(|| stream.read(&mut piece)).unwrap() {
            0 => return String::from_utf8(answer).unwrap(),
            more => answer.extend(&piece[..more]),
        }
    }
}

pub(crate) fn get(rig: &Rig, path: &str) -> String {
    say(rig, &format!("GET {path} HTTP/1.1\r\nHost: node\r\n\r\n"))
}

/// The value of the sample that begins so.
pub(crate) fn sample(page: &str, begins: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(begins));
    let line = line.unwrap_or_else(|| panic!("no {begins} in\n{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn serving() -> Rig {
    let mut rig = Rig::bare();
    rig.run_with("auto", &["--metrics", ADDRESS]);
    rig
}

#[test]
fn a_scrape_says_what_the_ports_have_carried_and_how_the_agent_is() {
    let mut rig = serving();
    for number in [2, 3] {
        let port = rig.container(number);
        rig.attach(&port).unwrap();
    }
    rig.exchange(0, 1, 20);
    let page = get(&rig, "/metrics");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("content-type: application/openmetrics-text; version=1.0.0"), "{page}");
    assert_eq!(sample(&page, "shunt_agent_healthy "), 1.0);
    assert_eq!(sample(&page, "shunt_attachments "), 2.0);
    let port =
        r#"shunt_port_bytes_total{network="net",container="c2",interface="eth0",host_interface="veth2","#;
    let sent = rig.ports().into_iter().find(|port| port.container == "c2").unwrap().from;
    let said = sample(&page, &format!(r#"{port}direction="from"}}"#));
    // The kernel sends a packet of its own now and then.
    assert!(said >= 20.0 * 50.0 && said <= sent.bytes as f64, "{said} of {sent:?}");
    assert!(get(&rig, "/healthz").ends_with("\r\n\r\nok\n"));
}

#[test]
fn what_is_no_scrape_is_refused_and_a_silent_client_disturbs_nobody() {
    let rig = serving();
    let _silent: Vec<_> = (0..8).map(|_| connect(&rig)).collect();
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: node\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let answer = say(&rig, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    assert!(get(&rig, "/metrics").starts_with("HTTP/1.1 200 OK"));
    assert!(rig.status().healthy);
}

#[test]
fn an_address_that_is_in_use_is_a_clear_error_and_touches_nothing() {
    let mut rig = serving();
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.kill();
    let other = rig.node.enter(|| TcpListener::bind(ADDRESS)).unwrap().unwrap();
    let mut command = rig.command("auto");
    command.args(["--metrics", ADDRESS]);
    assert_eq!(rig.run_to_end(command), 1);
    let why = "metrics cannot be served on 127.0.0.1:9464: Address already in use";
    assert!(rig.log().contains(why), "{}", rig.log());
    // Else the rig would take the next agent for one that cannot run either.
    fs::remove_file(rig.lab.root().join("log")).unwrap();
    drop(other);
    rig.run_with("auto", &["--metrics", ADDRESS]);
    rig.check(&port).unwrap();
    assert_eq!(sample(&get(&rig, "/metrics"), "shunt_attachments "), 1.0);
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_is_done() {
    let rig = Rig::bare();
    for address in ["9464", "localhost:9464", "127.0.0.1", "127.0.0.1:65536"] {
        let mut command = rig.command("auto");
        command.args(["--metrics", address]);
        assert_eq!(rig.run_to_end(command), 2, "{address}");
    }
    assert!(rig.log().contains("--metrics <ADDR:PORT>"), "{}", rig.log());
}
