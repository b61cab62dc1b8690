//! The counters of a container's host end do not see what is redirected past it; what `ports` and the metrics say of the container is
//! what was sent.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use shunt_agent_api::{PortReport, Traffic};

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, frame, says};

/// Where the agent serves its metrics.
pub(crate) const METRICS: &str = "127.0.0.1:9464";

/// Frames from the first to the second and back, with their sizes.
const SENT: [(u64, usize); 2] = [(1_000, 200), (300, 1_000)];

/// A page of metrics.
pub(crate) fn scrape(stage: &Stage) -> String {
    let get = || {
        let mut stream = TcpStream::connect(METRICS).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    };
    stage.node.namespace().enter(get).unwrap()
}

/// The sum of a metric's samples with all of these labels.
fn metric(page: &str, name: &str, labels: [(&str, &str); 2]) -> u64 {
    let labels = labels.map(|(label, value)| format!("{label}=\"{value}\""));
    let samples = page.lines().filter(|line| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label.as_str()))
    });
    let values = samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    values.sum::<f64>() as u64
}

/// Packets and bytes that a container has sent and was sent, as `ports` says and as the metrics say.
fn figures(stage: &Stage, container: &str) -> [[u64; 4]; 2] {
    let PortReport { from, to, .. } = stage.node.agent().port(container).unwrap();
    let of = |Traffic { packets, bytes, .. }: Traffic| [packets, bytes];
    let ([a, b], [c, d]) = (of(from), of(to));
    let page = scrape(stage);
    let told = |name, way| metric(&page, name, [("container", container), ("direction", way)]);
    let names = ["shunt_port_packets_total", "shunt_port_bytes_total"];
    let ([e, f], [g, h]) = (names.map(|name| told(name, "from")), names.map(|name| told(name, "to")));
    [[a, b, c, d], [e, f, g, h]]
}

/// Packets that a host end has sent, as the kernel counts.
fn sent_by_host_end(stage: &Stage, container: &str) -> u64 {
    let port = stage.node.agent().port(container).unwrap().host_ifname;
    let shown = stage.node.namespace().command("ip", &["-j", "-s", "link", "show", "dev", &port]).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
}

/// Has both send, and compares what is told of it.
fn exchange(stage: &Stage, wires: &[Wire; 2]) -> Result<(), String> {
    let before = ["one", "two"].map(|id| figures(stage, id));
    for ((count, size), (from, to)) in SENT.into_iter().zip([(0, 1), (1, 0)]) {
        let mut sent = frame(wires[to].mac(), wires[from].mac(), "counted");
        sent.resize(size, 0);
        for at in 1..=count {
            wires[from].send(&sent);
            if at % 100 == 0 {
                wires[to].at_hand();
            }
        }
    }
    let after = ["one", "two"].map(|id| figures(stage, id));
    let [(forth, forth_size), (back, back_size)] = SENT.map(|(count, size)| (count, size as u64));
    let (forth, back) = ([forth, forth * forth_size], [back, back * back_size]);
    for (index, (from, to)) in [(forth, back), (back, forth)].into_iter().enumerate() {
        for (who, (before, after)) in
            ["ports", "metrics"].into_iter().zip(before[index].iter().zip(&after[index]))
        {
            let said = [0, 1, 2, 3].map(|at| after[at] - before[at]);
            let sent = [from[0], from[1], to[0], to[1]];
            if said != sent {
                return Err(format!("{who} of container {index}: {said:?}, and {sent:?} were sent"));
            }
        }
    }
    Ok(())
}

#[test]
fn what_was_sent_is_what_ports_and_metrics_say_of_each_container_in_both_directions() {
    let mut stage = Stage::empty_with(&["--metrics", METRICS]);
    stage.add("one");
    stage.add("two");
    let wires = [0, 1].map(|index| tap(&stage.sandboxes[index]));
    // What the containers' stacks say as they come up is over.
    for wire in &wires {
        wire.until_silence();
    }
    let host_end = sent_by_host_end(&stage, "two");
    // A node's stack reports its groups whenever it likes: a frame of its own may come between.
    let differences: Vec<_> = (0..3).map_while(|_| exchange(&stage, &wires).err()).collect();
    assert!(differences.len() < 3, "three times it was not what was sent: {differences:?}");
    // Which is why others' tools see less.
    assert!(sent_by_host_end(&stage, "two") - host_end < 300);
    wires[0].send(&frame(BROADCAST, wires[0].mac(), "flooded"));
    wires[1].until(|frame| says(frame, "flooded"));
}
