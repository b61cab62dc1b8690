//! What matters on a node, one case after the other.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

use super::attempt::{Family, does_not_forward, failed, no_address, tried};
use super::ground::{Ground, SERVER, free_port};
use super::namespace::Namespace;
use super::outside::Outside;
use super::policies;
use super::row::Row;
use super::talk::{Ends, rate, tcp, udp};

/// Messages of a conversation.
const ROUNDS: usize = 50;

/// Bytes of a request, of a large answer of a name server, and of what is cut into segments.
const SMALL: usize = 64;
const DNS: usize = 512;
const LARGE: usize = 100_000;

/// Bits a second that a container is limited to, and at once.
const LIMIT: u64 = 20_000_000;
const BURST: u64 = 1_000_000;

/// What of the limit may arrive: the queue's is larger by a frame's header.
const RIGHT: std::ops::Range<f64> = 0.5..1.15;

const TIME: Duration = Duration::from_secs(2);

/// The families, by whether it is IPv6.
const FAMILIES: [(bool, &str); 2] = [(false, "IPv4"), (true, "IPv6")];

/// Tries all of them until `is_over` says that nobody waits any more.
pub(super) fn run(ground: &Ground, is_over: impl Fn() -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for family in FAMILIES {
        for case in CASES {
            if !is_over() {
                rows.push(case(ground, family));
            }
        }
    }
    rows
}

const CASES: [fn(&Ground, Family) -> Row; 12] = [
    neighbour,
    small_datagrams,
    large,
    gateway,
    out,
    host_port,
    neighbours_host_port,
    hairpin,
    limited,
    policies::port_isolation,
    policies::isolated,
    policies::same_bridge,
];

fn neighbour(ground: &Ground, family: Family) -> Row {
    between(ground, "same bridge", family, |ends| tcp(ends, ROUNDS, SMALL))
}

fn small_datagrams(ground: &Ground, family: Family) -> Row {
    between(ground, "same bridge, DNS-sized", family, |ends| udp(ends, ROUNDS, DNS))
}

fn large(ground: &Ground, family: Family) -> Row {
    between(ground, "same bridge, large", family, |ends| tcp(ends, ROUNDS, LARGE))
}

/// Between the two containers.
fn between(
    ground: &Ground,
    case: &'static str,
    family: Family,
    talk: impl FnOnce(Ends<'_>) -> io::Result<()>,
) -> Row {
    let Some(to) = ground.two.address(family.0) else { return no_address(case, family) };
    let ends = Ends {
        client: &ground.one.namespace,
        server: &ground.two.namespace,
        listens: SocketAddr::new(to, SERVER),
        through: None,
    };
    tried(ground, case, family, &[&ground.one], || talk(ends))
}

fn gateway(ground: &Ground, family: Family) -> Row {
    let case = "gateway";
    let mut addresses = ground.one.addresses().into_iter().filter(|(ip, _)| ip.is_ipv6() == family.0);
    match (addresses.next(), free_port()) {
        (None, _) => no_address(case, family),
        (Some((_, Some(gateway))), Ok(port)) => {
            let listens = SocketAddr::new(gateway, port);
            let (client, server) = (&ground.one.namespace, &ground.node);
            let ends = Ends { client, server, listens, through: None };
            tried(ground, case, family, &[&ground.one], || tcp(ends, ROUNDS, SMALL))
        }
        _ => Row::skipped(case, family.1, "the network has no gateway"),
    }
}

fn out(ground: &Ground, family: Family) -> Row {
    let case = "out";
    let beyond = match (ground.one.address(family.0), Outside::addresses(family.0)) {
        (None, _) => return no_address(case, family),
        (Some(_), Some([_, beyond])) => beyond,
        (Some(_), None) => return Row::skipped(case, family.1, "there is nothing beyond the node"),
    };
    if let Some(why) = does_not_forward(family) {
        return Row::skipped(case, family.1, why);
    }
    let (client, server) = (&ground.one.namespace, &ground.outside.namespace);
    let ends = Ends { client, server, listens: SocketAddr::new(beyond, SERVER), through: None };
    tried(ground, case, family, &[&ground.one], || {
        tcp(ends, ROUNDS, SMALL).and_then(|()| udp(ends, ROUNDS, DNS))
    })
}

fn host_port(ground: &Ground, family: Family) -> Row {
    let case = "host port";
    match does_not_forward(family) {
        Some(why) => Row::skipped(case, family.1, why),
        None => by_host_port(ground, case, family, &ground.outside.namespace),
    }
}

fn neighbours_host_port(ground: &Ground, family: Family) -> Row {
    by_host_port(ground, "host port, neighbour", family, &ground.one.namespace)
}

fn hairpin(ground: &Ground, family: Family) -> Row {
    by_host_port(ground, "host port, hairpin", family, &ground.two.namespace)
}

/// To the second container by its host port, at the node's address towards the outside.
fn by_host_port(ground: &Ground, case: &'static str, family: Family, client: &Namespace) -> Row {
    let Some(port) = ground.host_port else {
        return Row::skipped(case, family.1, "the network has no capability portMappings");
    };
    let ips = ground.two.address(family.0).zip(Outside::addresses(family.0));
    let Some((to, [node, _])) = ips else { return no_address(case, family) };
    let ends = Ends {
        client,
        server: &ground.two.namespace,
        listens: SocketAddr::new(to, SERVER),
        through: Some(SocketAddr::new(node, port)),
    };
    tried(ground, case, family, &[&ground.two], || tcp(ends, ROUNDS, SMALL))
}

/// A third container is held to its limit.
fn limited(ground: &Ground, family: Family) -> Row {
    let case = "limit";
    if !ground.chain.has_capability("bandwidth") {
        return Row::skipped(case, family.1, "the network has no capability bandwidth");
    }
    let asked = json!({ "bandwidth": { "egressRate": LIMIT, "egressBurst": BURST } });
    let limited = match ground.add("limited", &ground.chain, asked) {
        Ok(limited) => limited,
        Err(error) => return failed(case, family, &error),
    };
    let Some(to) = ground.one.address(family.0) else { return no_address(case, family) };
    let listens = SocketAddr::new(to, SERVER);
    let (client, server) = (&limited.namespace, &ground.one.namespace);
    let ends = Ends { client, server, listens, through: None };
    tried(ground, case, family, &[&limited], || {
        let share = rate(ends, TIME)? / LIMIT as f64;
        if RIGHT.contains(&share) {
            return Ok(());
        }
        Err(io::Error::other(format!("{:.0} % of the limit arrived", share * 100.0)))
    })
}
