//! A client outside, a port of the node, a container behind it: connections a second with few mappings on the node and
//! with many, beside the reference `portmap`; and what another mapping costs.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use shunt_lab::load::{Bound, Placement, cpus, tcp_crr};
use shunt_lab::{Binaries, Container, Interrupt, Lab, Namespace, Network, Node, Path, Sandbox};

use crate::add_del::milliseconds;
use crate::comparison::{Better, Comparison, Row};
use crate::outside::{NODE, join};
use crate::rounds::Rounds;
use crate::screen::Screen;

/// The container's port.
const PORT: u16 = 8080;

/// The first host port; the others follow.
const FIRST: u16 = 20_000;

/// How many mappings one container asks for.
const PER_CONTAINER: u16 = 500;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// Mappings on the nodes, the fewest first.
    pub(crate) mappings: &'a [u16],
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Of each measurement.
    pub(crate) bound: Bound,
}

/// Measures connections from outside, and ADD of one more mapping.
pub(crate) fn compare(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    plan: Plan<'_>,
) -> Result<[Comparison; 2]> {
    let mut sides = vec![];
    for maker in [Maker::Reference, Maker::Shunt] {
        for count in plan.mappings {
            interrupt.check()?;
            screen.progress(0.0, &format!("{}: {count} host ports", maker.title()), None);
            sides.push(Side::prepare(lab, maker, *count)?);
        }
    }
    // A host without any translation: the least that a connection from outside can cost.
    sides.push(Side::prepare(lab, Maker::Nobody, 0)?);
    let connections = connections(screen, interrupt, &sides, plan)?;
    let adds = adds(screen, interrupt, lab, &sides, plan)?;
    Ok([connections, adds])
}

/// Connections to a host port of each build, by turns.
pub(crate) fn of_builds(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    builds: &[Binaries],
    plan: Plan<'_>,
) -> Result<Comparison> {
    let count = plan.mappings.first().copied().unwrap_or(1);
    let side = |(place, build)| Side::of_build(lab, &format!("build-{place}"), build, count);
    let sides = builds.iter().enumerate().map(side).collect::<Result<Vec<_>>>()?;
    connections(screen, interrupt, &sides, plan)
}

fn connections(
    screen: &mut Screen,
    interrupt: &Interrupt,
    sides: &[Side],
    plan: Plan<'_>,
) -> Result<Comparison> {
    let at = Placement::one(*cpus()?.last().context("no CPU may be used")?);
    let mut rows: Vec<Row> = sides.iter().map(Side::row).collect();
    let title = "Connections from outside to a host port";
    let rounds = Rounds { title, count: plan.rounds, warm_up: 1, contestants: sides.len() };
    rounds.run(screen, interrupt, |turn| {
        let side = &sides[turn.contestant];
        let sample = tcp_crr(side.path()?, at, plan.bound).with_context(|| side.title())?;
        if turn.counts {
            rows[turn.contestant].figures.extend(sample.p50_us);
            rows[turn.contestant].p99_us.extend(sample.p99_us);
        }
        Ok(())
    })?;
    Ok(Comparison {
        name: "host-port".to_owned(),
        title: title.to_owned(),
        unit: "µs".to_owned(),
        better: Better::Less,
        setting: format!("both ends on CPU {}", at.client),
        rows,
    }
    .judged())
}

fn adds(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    sides: &[Side],
    plan: Plan<'_>,
) -> Result<Comparison> {
    let sides: Vec<&Side> = sides.iter().filter(|side| side.maker != Maker::Nobody).collect();
    let guests = sides
        .iter()
        .map(|side| Container::create(lab, &format!("{}-guest", side.node.name())))
        .collect::<Result<Vec<_>>>()?;
    let mut rows: Vec<Row> = sides.iter().map(|side| side.row()).collect();
    let title = "CNI ADD with one more host port";
    let rounds = Rounds { title, count: plan.rounds, warm_up: 1, contestants: sides.len() };
    rounds.run(screen, interrupt, |turn| {
        let (side, guest) = (sides[turn.contestant], &guests[turn.contestant]);
        let took = side.one_more(guest)?;
        if turn.counts {
            rows[turn.contestant].figures.push(milliseconds(took));
        }
        Ok(())
    })?;
    Ok(Comparison {
        name: "host-port-add".to_owned(),
        title: title.to_owned(),
        unit: "ms".to_owned(),
        better: Better::Less,
        setting: "exec to exit, whole chain".to_owned(),
        rows,
    }
    .judged())
}

/// Who maps ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Shunt,
    /// The reference `bridge` and `portmap`, with iptables.
    Reference,
    /// The server is on the node itself.
    Nobody,
}

impl Maker {
    fn name(self) -> &'static str {
        match self {
            Self::Shunt => "shunt",
            Self::Reference => "portmap",
            Self::Nobody => "plain-host",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Shunt => "shunt",
            Self::Reference => "bridge + portmap",
            Self::Nobody => "a server on the node itself",
        }
    }
}

/// A node with an uplink, a client behind that, and mappings.
struct Side {
    maker: Maker,
    count: u16,
    sandboxes: Vec<Sandbox>,
    network: Option<Network>,
    outside: Namespace,
    node: Node,
}

impl Side {
    fn prepare(lab: &Lab, maker: Maker, count: u16) -> Result<Self> {
        let name = format!("{}-{count}", maker.name());
        let node = match maker {
            Maker::Shunt => Node::start(lab, &name)?,
            Maker::Reference | Maker::Nobody => Node::bare(lab, &name)?,
        };
        Self::on(lab, node, maker, count)
    }

    fn of_build(lab: &Lab, name: &str, build: &Binaries, count: u16) -> Result<Self> {
        Self::on(lab, Node::start_of(lab, name, build, &[])?, Maker::Shunt, count)
    }

    fn on(lab: &Lab, node: Node, maker: Maker, count: u16) -> Result<Self> {
        let name = node.name().to_owned();
        let outside = lab.namespace(&format!("{name}-outside"))?;
        join(&node, &outside)?;
        let network = match maker {
            Maker::Shunt => Some(node.network("ports", "cni0", &["10.79.0.0/16"])),
            Maker::Reference => Some(node.reference_network("ports", "cni0", &["10.79.0.0/16"])),
            Maker::Nobody => None,
        };
        let mut side = Self { maker, count, sandboxes: Vec::new(), network, outside, node };
        for begin in (0..count).step_by(PER_CONTAINER.into()) {
            let ports: Vec<u16> =
                (begin..count.min(begin + PER_CONTAINER)).map(|port| FIRST + port).collect();
            let network = side.mapped(&ports)?;
            let id = format!("{}-{begin}", side.node.name());
            side.sandboxes.push(Sandbox::start(lab, &side.node, &network, &id)?);
        }
        Ok(side)
    }

    fn title(&self) -> String {
        match (self.maker, self.count) {
            (Maker::Nobody, _) => self.maker.title().to_owned(),
            (maker, 1) => format!("{}, 1 mapping", maker.title()),
            (maker, count) => format!("{}, {count} mappings", maker.title()),
        }
    }

    fn row(&self) -> Row {
        let name = if self.maker == Maker::Nobody { self.maker.name() } else { self.node.name() };
        Row::new(name, &self.title())
    }

    /// The network as a runtime asks for it that wants these host ports.
    fn mapped(&self, ports: &[u16]) -> Result<Network> {
        let mapping = |port: &u16| json!({ "hostPort": port, "containerPort": PORT, "protocol": "tcp" });
        let wanted = json!({ "portMappings": ports.iter().map(mapping).collect::<Vec<Value>>() });
        let network = self.network.clone().context("nobody maps ports here")?;
        Ok(match self.maker {
            Maker::Shunt => network.with("runtimeConfig", wanted),
            _ => network.then(json!({ "type": "portmap", "snat": true, "runtimeConfig": wanted })),
        })
    }

    /// To the last of its mappings: where a list is searched, that is its end.
    fn path(&self) -> Result<Path<'_>> {
        let node = IpAddr::from(NODE);
        let Some(last) = self.sandboxes.last() else {
            return Ok(Path::direct(&self.outside, self.node.namespace(), node));
        };
        let address = last.attachment().ipv4()?.into();
        let through = SocketAddr::new(node, FIRST + self.count - 1);
        let direct = Path::direct(&self.outside, last.namespace(), address);
        Ok(Path { port: PORT, through: Some(through), ..direct })
    }

    /// The time of an ADD with a mapping of its own.
    fn one_more(&self, guest: &Container) -> Result<Duration> {
        let network = self.mapped(&[FIRST - 1])?;
        let added = network.add(self.node.namespace(), guest)?;
        network.del(self.node.namespace(), guest, &added.result)?;
        Ok(added.took)
    }
}
