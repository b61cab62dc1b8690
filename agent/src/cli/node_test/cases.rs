//! What matters on a node, one case after the other.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};

use super::ground::{Ground, SERVER, free_port};
use super::namespace::Namespace;
use super::outside::Outside;
use super::row::{Outcome, Row};
use super::sandbox::Sandbox;
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
    for case in [limited, isolated] {
        if !is_over() {
            rows.push(case(ground));
        }
    }
    rows
}

type Family = (bool, &'static str);

const CASES: [fn(&Ground, Family) -> Row; 8] =
    [neighbour, small_datagrams, large, gateway, out, host_port, neighbours_host_port, hairpin];

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
fn limited(ground: &Ground) -> Row {
    let (case, family) = ("limit", FAMILIES[0]);
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

/// Two isolated containers do not reach each other.
fn isolated(ground: &Ground) -> Row {
    let (case, family) = ("policy: portIsolation", FAMILIES[0]);
    if !ground.chain.is_of_bridge() {
        return Row::skipped(case, family.1, "the network is not one of a bridge");
    }
    let chain = ground.chain.clone().with("portIsolation", Value::Bool(true));
    let both = ["left", "right"].map(|name| ground.add(name, &chain, Value::Null));
    let [left, right] = match both {
        [Ok(left), Ok(right)] => [left, right],
        [Err(error), _] | [_, Err(error)] => return failed(case, family, &error),
    };
    let Some(to) = right.address(family.0) else { return no_address(case, family) };
    tried(ground, case, family, &[&left, &right], || kept_apart(ground, &left, &right, to))
}

/// Nothing of it is counted where the kernel's bridge drops what asks for the address: that both are alive is tried by a third one.
fn kept_apart(ground: &Ground, left: &Sandbox, right: &Sandbox, to: IpAddr) -> io::Result<()> {
    let listens = SocketAddr::new(to, SERVER);
    let ends = Ends { client: &left.namespace, server: &right.namespace, listens, through: None };
    if tcp(ends, 1, SMALL).is_ok() {
        return Err(io::Error::other("isolated containers reach each other"));
    }
    let Some(open) = ground.one.address(to.is_ipv6()) else { return Ok(()) };
    [left, right].into_iter().try_for_each(|isolated| {
        let listens = SocketAddr::new(open, SERVER);
        let (client, server) = (&isolated.namespace, &ground.one.namespace);
        tcp(Ends { client, server, listens, through: None }, 1, SMALL)
    })
}

fn tried(
    ground: &Ground,
    case: &'static str,
    family: Family,
    containers: &[&Sandbox],
    work: impl FnOnce() -> io::Result<()>,
) -> Row {
    let counted = || ground.counted(containers).map_err(io::Error::other);
    let done = counted().and_then(|before| {
        let said = work();
        Ok((before, said, counted()?))
    });
    match done {
        Ok(([fast, kernel], said, [more_fast, more_kernel])) => Row {
            case,
            family: family.1,
            outcome: if said.is_ok() { Outcome::Passed } else { Outcome::Failed },
            fast: more_fast.saturating_sub(fast),
            kernel: more_kernel.saturating_sub(kernel),
            detail: said.err().map_or_else(String::new, |error| error.to_string()),
        },
        Err(error) => failed(case, family, &error),
    }
}

fn failed(case: &'static str, family: Family, error: &impl ToString) -> Row {
    Row { outcome: Outcome::Failed, ..Row::skipped(case, family.1, error.to_string()) }
}

fn no_address(case: &'static str, (_, family): Family) -> Row {
    Row::skipped(case, family, format!("the network gives no {family} address"))
}

/// Why what comes from elsewhere reaches no container.
fn does_not_forward((is_ipv6, family): Family) -> Option<String> {
    let setting = if is_ipv6 { "ipv6/conf/all/forwarding" } else { "ipv4/ip_forward" };
    let value = fs::read_to_string(format!("/proc/sys/net/{setting}")).unwrap_or_default();
    let forwards = !matches!(value.trim(), "" | "0");
    (!forwards).then(|| format!("the node does not forward {family}: net.{}", setting.replace('/', ".")))
}
