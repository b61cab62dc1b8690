//! Metrics over HTTP, beside everything else that the agent does.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use shunt_agent_api::{BridgePort, Pod, Request};
use shunt_lab::uninterrupted;

use crate::rig::{PATIENCE, Rig, eventually};

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

/// A pod of a namespace.
fn pod(namespace: &str, name: &str) -> Option<Pod> {
    Some(Pod { namespace: namespace.into(), name: name.into(), uid: format!("uid-{name}"), ..Pod::default() })
}

fn run_with_sums(rig: &mut Rig) {
    let config = rig.lab.root().join("config.toml");
    fs::write(&config, format!("metrics = '{ADDRESS}'\nmetrics_labels = 'namespace'\n")).unwrap();
    rig.run_with("auto", &["--config", config.to_str().unwrap()]);
}

#[test]
fn a_namespaces_sum_stays_when_its_pods_go_and_the_agent_is_killed() {
    let mut rig = Rig::bare();
    run_with_sums(&mut rig);
    let ports = [2, 3].map(|number| BridgePort { pod: pod("team", "web"), ..rig.container(number) });
    ports.iter().for_each(|port| drop(rig.attach(port).unwrap()));
    rig.exchange(0, 1, 20);
    let sum = |rig: &Rig| {
        let page = get(rig, "/metrics");
        assert!(!page.contains("container="), "{page}");
        sample(&page, r#"shunt_port_bytes_total{direction="from",namespace="team"} "#)
    };
    let carried = || -> u64 { rig.ports().iter().map(|port| port.from.bytes).sum() };
    let (before, both, after) = (carried() as f64, sum(&rig), carried() as f64);
    assert!(before >= 2000.0 && (before..=after).contains(&both), "{before} {both} {after}");
    rig.detach(&ports[0]).unwrap();
    let one = sum(&rig);
    assert!(one >= both && one <= both * 1.5, "{both}, then {one}");
    rig.detach(&ports[1]).unwrap();
    let none = sum(&rig);
    assert!(none >= one && none <= both * 1.5, "{one}, then {none}");
    // It is on the disk within a second.
    let file = rig.state().join("departed.json");
    eventually("it is written", || fs::read_to_string(&file).is_ok_and(|text| text.contains("\"team\"")));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    rig.kill();
    run_with_sums(&mut rig);
    assert_eq!(sum(&rig), none);
    // The next pod adds to it.
    rig.attach(&ports[0]).unwrap();
    assert!(sum(&rig) >= none);
}

#[test]
fn a_pod_that_went_while_there_was_no_agent_stays_in_the_sum_and_a_bad_file_is_begun_anew() {
    let mut rig = Rig::bare();
    run_with_sums(&mut rig);
    let ports = [2, 3].map(|number| BridgePort { pod: pod("team", "web"), ..rig.container(number) });
    ports.iter().for_each(|port| drop(rig.attach(port).unwrap()));
    rig.exchange(0, 1, 20);
    let name = r#"shunt_port_bytes_total{direction="from",namespace="team"} "#;
    let before = sample(&get(&rig, "/metrics"), name);
    rig.kill();
    rig.ip(&["link", "del", "veth2"]);
    run_with_sums(&mut rig);
    assert!(sample(&get(&rig, "/metrics"), name) >= before);
    rig.kill();
    fs::write(rig.state().join("departed.json"), "{\"format\":1,").unwrap();
    run_with_sums(&mut rig);
    assert!(rig.status().healthy);
    assert!(sample(&get(&rig, "/metrics"), name) > 0.0);
}

#[test]
fn ports_and_samples_name_the_pod_and_a_record_of_an_older_agent_names_none() {
    let mut rig = serving();
    let named = BridgePort { pod: pod("team", "web-0"), ..rig.container(2) };
    let nameless = rig.container(3);
    for port in [&named, &nameless] {
        rig.attach(port).unwrap();
    }
    for _ in 0..2 {
        let ports = rig.ports();
        let of = |container: &str| ports.iter().find(|port| port.container == container).unwrap();
        let port = of("c2");
        assert_eq!([&*port.namespace, &*port.pod, &*port.pod_uid], ["team", "web-0", "uid-web-0"]);
        let json = serde_json::to_value(of("c3")).unwrap();
        assert!(json.get("namespace").is_none() && json.get("pod").is_none(), "{json}");
        let page = get(&rig, "/metrics");
        let line = r#"host_interface="veth2",direction="from",namespace="team",pod="web-0"} "#;
        assert!(page.contains(line), "{page}");
        // The next agent has it from the record.
        rig.kill();
        rig.run_with("auto", &["--metrics", ADDRESS]);
    }
    rig.ask(Request::Check { port: named }).unwrap();
}
